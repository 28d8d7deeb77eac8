import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { closeIncidents, insertWebhook, listWebhooks, openIncident, webhookSecret } from '@floe/db'
import type { IncidentReport } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { actor, controllersFixture } from './testing/controllers-fixture'
import { retryAfterMs } from './webhooks'

type Received = { headers: IncomingHttpHeaders; body: string }
let fixture: Awaited<ReturnType<typeof controllersFixture>>
let received: Received[]
let status: number
let server: ReturnType<typeof createServer>
let url: string
beforeEach(async () => {
  received = []
  status = 204
  server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      received.push({ headers: request.headers, body })
      response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}/hook`
  fixture = await controllersFixture(inject('engineConnectionString'))
})
afterEach(async () => {
  await fixture.remove()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const incident: IncidentReport = {
  key: 'instance-crashed:a',
  severity: 'critical',
  title: 'instance "a" crashed',
}

test('opening and closing are told once each, in order, signed, by however many controllers', async () => {
  const webhookId = await insertWebhook(fixture.db.pool, { url, actor })
  fixture.start()
  fixture.start()
  await openIncident(fixture.db.pool, incident)
  await waitUntil('the opening is told', () => received.length === 1)
  await closeIncidents(fixture.db.pool, [incident.key])
  await waitUntil('the closing is told', () => received.length === 2)
  const [opened, closed] = received.map((r) => JSON.parse(r.body))
  expect(opened).toMatchObject({
    type: 'incident.opened',
    data: { key: incident.key, title: incident.title, closedAt: null },
  })
  expect(closed).toMatchObject({ type: 'incident.closed', data: { incidentId: opened.data.incidentId } })
  expect(closed.data.closedAt).not.toBeNull()
  for (const { headers, body } of received) {
    const key = Buffer.from(webhookSecret('a secret of the tests', webhookId).slice(6), 'base64')
    const signed = createHmac('sha256', key)
      .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`)
      .digest('base64')
    expect(headers['webhook-signature']).toBe(`v1,${signed}`)
    expect(Math.abs(Date.now() / 1_000 - Number(headers['webhook-timestamp']))).toBeLessThan(60)
  }
})

test('what is not taken is sent again with the same id, and a closing waits for its opening', async () => {
  await insertWebhook(fixture.db.pool, { url, actor })
  status = 500
  fixture.start()
  await openIncident(fixture.db.pool, incident)
  await closeIncidents(fixture.db.pool, [incident.key])
  await waitUntil(
    'it was tried',
    async () => (await listWebhooks(fixture.db.pool))[0]?.waiting === 2 && received.length === 1,
  )
  status = 204
  await fixture.db.pool.query('UPDATE webhook_delivery SET "nextAttemptAt" = now()')
  await waitUntil('both are told', () => received.length === 3, 20_000)
  expect(received.map((r) => JSON.parse(r.body).type)).toEqual([
    'incident.opened',
    'incident.opened',
    'incident.closed',
  ])
  expect(received[0]?.headers['webhook-id']).toBe(received[1]?.headers['webhook-id'])
})

test('a redirect is not followed, and a receiver that is gone delays no other', async () => {
  const closed = createServer()
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as { port: number }
  await new Promise((resolve) => closed.close(resolve))
  const gone = await insertWebhook(fixture.db.pool, { url: `http://127.0.0.1:${port}/`, actor })
  await insertWebhook(fixture.db.pool, { url, actor })
  status = 302
  fixture.start()
  await openIncident(fixture.db.pool, incident)
  await waitUntil('both were tried', async () => {
    const webhooks = await listWebhooks(fixture.db.pool)
    return webhooks.every((w) => w.last?.attempts === 1)
  })
  expect(received).toHaveLength(1)
  const webhooks = await listWebhooks(fixture.db.pool)
  expect(webhooks.find((w) => w.webhookId !== gone)?.last?.error).toBe('it answered 302')
  expect(webhooks.find((w) => w.webhookId === gone)?.last?.error).toContain('ECONNREFUSED')
})

test('an address of the own machine is refused unless config.json allows it', async () => {
  // the fixture allows 127.0.0.1, as config.json would
  await insertWebhook(fixture.db.pool, { url: url.replace('127.0.0.1', '127.0.0.2'), actor })
  await insertWebhook(fixture.db.pool, { url: url.replace('127.0.0.1', '[::1]'), actor })
  fixture.start()
  await openIncident(fixture.db.pool, incident)
  await waitUntil('both were tried', async () =>
    (await listWebhooks(fixture.db.pool)).every((w) => w.last?.attempts === 1),
  )
  for (const { last } of await listWebhooks(fixture.db.pool)) expect(last?.error).toMatch(/is not allowed$/)
  expect(received).toEqual([])
})

test('a receiver that never answers is given up on after 5 s, and what is too old is not tried for ever', async () => {
  const hanging = createServer(() => {})
  await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = hanging.address() as { port: number }
    await insertWebhook(fixture.db.pool, { url: `http://127.0.0.1:${port}/`, actor })
    await openIncident(fixture.db.pool, incident)
    fixture.start()
    const last = async () => (await listWebhooks(fixture.db.pool))[0]?.last
    await waitUntil('its deadline is over', async () => (await last())?.attempts === 1, 20_000)
    expect(await last()).toMatchObject({ givenUpAt: null, error: expect.stringContaining('timeout') })
    await fixture.db.pool.query(
      `UPDATE webhook_delivery SET "createdAt" = now() - interval '25 hours', "nextAttemptAt" = now()`,
    )
    await waitUntil('it is given up', async () => (await last())?.givenUpAt, 30_000)
    expect((await listWebhooks(fixture.db.pool))[0]?.waiting).toBe(0)
  } finally {
    hanging.closeAllConnections()
    await new Promise((resolve) => hanging.close(resolve))
  }
})

test('the waits grow to an hour and end within a day', () => {
  const waits: number[] = []
  for (let attempt = 1; retryAfterMs(attempt) !== null; attempt++) waits.push(retryAfterMs(attempt) as number)
  expect(waits.slice(0, 3)).toEqual([5_000, 10_000, 20_000])
  expect(Math.max(...waits)).toBe(3_600_000)
  const hours = waits.reduce((a, b) => a + b, 0) / 3_600_000
  expect(hours).toBeGreaterThan(6)
  expect(hours).toBeLessThan(24)
})
