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
  await openIncident(it.database.pool, { key: 'before', severity: 'warning', title: 'before' })
  const { webhookId, secret } = await admin.webhook.add({ url: 'https://example.org/hook?token=x' })
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect((await admin.webhook.list()).webhooks).toMatchObject([{ webhookId, last: null, waiting: 0 }])
  await openIncident(it.database.pool, { key: 'after', severity: 'critical', title: 'after' })
  await openIncident(it.database.pool, { key: 'after', severity: 'critical', title: 'after, in other words' })
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

test('an operator cannot name an address, and what is none is refused', async () => {
  const operator = await it.callerOf((await it.signedIn('operator')).headers)
  await expect(operator.webhook.add({ url: 'https://example.org/' })).rejects.toThrow('may not do this')
  const admin = await it.callerOf((await it.signedIn('admin')).headers)
  for (const url of ['ftp://example.org/', 'file:///etc/passwd', 'example.org'])
    await expect(admin.webhook.add({ url })).rejects.toThrow()
})
