import { openIncident } from '@floe/db'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

test('a webhook is told of what opens from then on; its secret is shown once and stands in no row', async () => {
  const admin = await it.callerOf((await it.signedIn('admin')).headers)
  await openIncident(it.database.pool, { key: 'host-offline:before', severity: 'warning', title: 'before' })
  const { webhookId, secret } = await admin.webhook.add({ url: 'https://example.org/hook?token=x' })
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect((await admin.webhook.list()).webhooks).toMatchObject([{ webhookId, last: null, waiting: 0 }])
  await openIncident(it.database.pool, { key: 'host-offline:after', severity: 'critical', title: 'after' })
  await openIncident(it.database.pool, {
    key: 'host-offline:after',
    severity: 'critical',
    title: 'after, in other words',
  })
  expect((await admin.webhook.list()).webhooks).toMatchObject([
    { waiting: 1, last: { event: 'incident.opened', attempts: 0, deliveredAt: null } },
  ])
  const dump = JSON.stringify([
    (await it.database.pool.query('SELECT * FROM webhook')).rows,
    (await it.database.pool.query('SELECT * FROM webhook_delivery')).rows,
    (await it.database.pool.query('SELECT * FROM audit_event')).rows,
  ])
  expect(dump).not.toContain(secret.slice(6))
  expect(JSON.stringify((await it.database.pool.query('SELECT * FROM audit_event')).rows)).not.toContain(
    'token=x',
  )
})

test('a test is queued, and a removed webhook is told nothing more', async () => {
  const admin = await it.callerOf((await it.signedIn('admin')).headers)
  const { webhookId } = await admin.webhook.add({ url: 'http://127.0.0.1:9/hook' })
  await admin.webhook.test({ webhookId })
  expect((await admin.webhook.list()).webhooks.find((w) => w.webhookId === webhookId)).toMatchObject({
    waiting: 1,
    last: { event: 'webhook.test' },
  })
  await admin.webhook.remove({ webhookId })
  await expect(admin.webhook.test({ webhookId })).rejects.toThrow('does not exist')
})

test('each message is shown with how it fared; who is no admin sees no more of an address than its origin', async () => {
  const admin = await it.callerOf((await it.signedIn('admin')).headers)
  const { webhookId } = await admin.webhook.add({ url: 'https://example.net/hook?token=y' })
  expect((await admin.webhook.deliveries({ webhookId })).deliveries).toEqual([])
  await openIncident(it.database.pool, {
    key: 'host-offline:shown',
    severity: 'warning',
    title: 'what happened',
  })
  await admin.webhook.test({ webhookId })
  const { deliveries } = await admin.webhook.deliveries({ webhookId })
  expect(deliveries).toMatchObject([
    { event: 'webhook.test', title: null, attempts: 0 },
    {
      event: 'incident.opened',
      title: 'what happened',
      deliveredAt: null,
      nextAttemptAt: expect.any(Number),
    },
  ])
  const viewer = await it.callerOf((await it.signedIn('viewer')).headers)
  expect(JSON.stringify(await viewer.webhook.list())).not.toContain('token=')
  expect(JSON.stringify(await viewer.webhook.deliveries({ webhookId }))).not.toContain('token=')
  const seen = (await viewer.webhook.list()).webhooks.find((w) => w.webhookId === webhookId)
  expect(seen?.url).toBe('https://example.net')
  await it.database.pool.query(
    `UPDATE webhook_delivery SET attempts = 1, error = 'connect ECONNREFUSED 10.0.0.7:22' WHERE "webhookId" = $1`,
    [webhookId],
  )
  expect(JSON.stringify(await admin.webhook.deliveries({ webhookId }))).toContain('ECONNREFUSED')
  for (const read of [await viewer.webhook.deliveries({ webhookId }), await viewer.webhook.list()]) {
    expect(JSON.stringify(read)).not.toContain('ECONNREFUSED')
    expect(JSON.stringify(read)).toContain('"error":"failed"')
  }
  await admin.webhook.remove({ webhookId })
  await expect(viewer.webhook.deliveries({ webhookId })).rejects.toThrow('does not exist')
})

test('an operator cannot name an address, and what is none is refused', async () => {
  const operator = await it.callerOf((await it.signedIn('operator')).headers)
  await expect(operator.webhook.add({ url: 'https://example.org/' })).rejects.toThrow('may not do this')
  const admin = await it.callerOf((await it.signedIn('admin')).headers)
  for (const url of [
    'ftp://example.org/',
    'file:///etc/passwd',
    'example.org',
    'https://ada:secret@example.org/',
  ])
    await expect(admin.webhook.add({ url })).rejects.toThrow()
})
