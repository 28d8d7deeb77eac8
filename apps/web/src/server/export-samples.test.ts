import { randomUUID } from 'node:crypto'
import { insertSamples } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { exportSamples } from './export-samples'
import { type ThrowawayConsole, throwawayConsole } from './testing/throwaway-console'

let it: ThrowawayConsole
let instanceId: string
const start = Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000
const count = 3_000
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  instanceId = (await insertTestInstance(it.database, { name: 'demo' })).instanceId
  const samples = Array.from({ length: count }, (_, i) => ({
    seq: i,
    at: start + i * 1_000,
    intervalMs: 1_000,
    values: i === 7 ? { tps: 1.5 } : { tps: i, wal_bytes: i * 2 },
  }))
  await insertSamples(it.database.pool, [{ instanceId, samples }])
})
afterAll(() => it.close())

const ask = async (query: Record<string, string | number>, headers?: Record<string, string>) =>
  exportSamples(
    it.ports,
    new Request(`${it.webUrl}/api/export/samples.csv?${new URLSearchParams(query as never)}`, {
      headers: headers ?? (await it.signedIn('viewer')).headers,
    }),
  )

test('a range comes as CSV with every sample once, in order, unknown values empty', async () => {
  const response = await ask({ instanceId, from: start, to: start + count * 1_000, metrics: 'tps,wal_bytes' })
  expect(response.headers.get('content-type')).toContain('text/csv')
  expect(response.headers.get('content-disposition')).toMatch(/filename="demo-/)
  const [header, ...lines] = (await response.text()).trimEnd().split('\r\n')
  expect(header).toBe('time,interval_ms,tps,wal_bytes')
  expect(lines).toHaveLength(count)
  expect(lines[0]).toBe(`${new Date(start).toISOString()},1000,0,0`)
  expect(lines[7]).toBe(`${new Date(start + 7_000).toISOString()},1000,1.5,`)
  expect(lines.at(-1)).toBe(
    `${new Date(start + (count - 1) * 1_000).toISOString()},1000,${count - 1},${(count - 1) * 2}`,
  )
})

test('times may be RFC 3339 as well', async () => {
  const response = await ask({
    instanceId,
    from: new Date(start).toISOString(),
    to: new Date(start + 9_500).toISOString(),
    metrics: 'tps',
  })
  expect((await response.text()).trimEnd().split('\r\n')).toHaveLength(11)
})

test('a range that is too long, or no time at all, is refused before anything is read', async () => {
  const day = 86_400_000
  for (const [from, to] of [
    [1, 1e15],
    [1, 1e300],
    [start - 401 * day, start],
  ] as const) {
    const response = await ask({ instanceId, from, to })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ fault: { code: 'input.invalid' } })
  }
  const long = await ask({ instanceId, from: start - 399 * day, to: start, metrics: 'tps' })
  expect(long.status).toBe(200)
  await long.text()
})

test('a fifth export at the same time is refused until one has ended or was given up', async () => {
  const one = () => ask({ instanceId, from: start, to: start + 1_000, metrics: 'tps' })
  const running = [await one(), await one(), await one(), await one()]
  const refused = await one()
  expect(refused.status).toBe(429)
  expect(await refused.json()).toMatchObject({ fault: { code: 'export.too_many' } })
  await running[0]?.body?.cancel()
  await running[1]?.text()
  const next = [await one(), await one()]
  expect(next.map((r) => r.status)).toEqual([200, 200])
  for (const response of [...running.slice(2), ...next]) await response.text()
})

test('without a session, with a bad range or for an unknown instance there is a fault and no file', async () => {
  expect((await ask({ instanceId, from: 1, to: 2 }, {})).status).toBe(401)
  expect((await ask({ instanceId, from: 2, to: 1 })).status).toBe(400)
  expect((await ask({ instanceId, from: 1, to: 2, metrics: 'tps,nonsense' })).status).toBe(400)
  const unknown = await ask({ instanceId: randomUUID(), from: 1, to: 2 })
  expect(unknown.status).toBe(404)
  expect(await unknown.json()).toMatchObject({ fault: { code: 'instance.not_found' } })
})
