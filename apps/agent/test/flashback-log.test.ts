import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'
import { StandbyFixture } from './standby-fixture'

let f: AgentFixture
let id: string
beforeAll(async () => {
  f = await AgentFixture.start(4)
  id = await f.createRunning({
    settings: {
      polar_enable_flashback_log: 'on',
      polar_enable_fast_recovery_area: 'on',
      polar_flashback_log_max_size: '1GB',
    },
  })
})
afterAll(() => f.remove())

const read = async (instanceId = id, sample = false) =>
  f.read.flashback.read.query({ instanceId: instanceId as never, sample })
const reported = async (instanceId = id) => (await f.observed(instanceId))?.flashback

test('an instance reports its window, what bounds it, and the points in it', async () => {
  await f.query(id, 'checkpoint')
  const before = await waitUntil('the window is reported', async () => {
    const log = await reported()
    return log?.state === 'on' && log.oldestAt !== null ? log : null
  })
  expect(before).toMatchObject({
    mode: 'async',
    windowsEnded: 0,
    failures: 0,
    limits: {
      recoveryArea: true,
      rotationMs: 180 * 60_000,
      keepBytes: 8 * 256 * 1_048_576,
      maxBytes: 1_073_741_824,
      recycleBytes: 10 * 1_073_741_824,
    },
  })
  expect(Math.abs(Date.now() - (before.oldestAt ?? 0))).toBeLessThan(120_000)
  await f.query(id, 'checkpoint')
  const { log, points } = await read()
  expect(log?.points).toBe(points.length)
  expect(points.length).toBeGreaterThanOrEqual(2)
  expect(points[0]?.at).toBe(log?.oldestAt)
  expect(points.at(-1)?.at).toBe(log?.newestPointAt)
  expect(points.map((p) => p.at)).toEqual(points.map((p) => p.at).sort((a, b) => a - b))
})

test('a window that gives way to the space that is to stay free says so, and why', async () => {
  expect((await read()).log?.shortened).toBeNull()
  await f.query(id, "alter system set polar_flashback_reserve = '1000TB'")
  await f.query(id, 'select pg_reload_conf()')
  const log = await waitUntil('the window gives way', async () => {
    await f.query(id, 'checkpoint')
    const { log } = await read()
    return log?.shortened ? log : null
  })
  expect(log.shortened?.reason).toMatch(/^\d+ MB were left on the file system of ".*", less than the reserve/)
  expect(Math.abs(Date.now() - (log.shortened?.lastAt ?? 0))).toBeLessThan(120_000)
  await f.query(id, 'alter system reset polar_flashback_reserve')
  await f.query(id, 'select pg_reload_conf()')
})

test('the window survives an ordered restart', async () => {
  const { log } = await read()
  await f.must({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
  const after = await waitUntil('the instance answers', async () => (await read().catch(() => null))?.log)
  expect(after).toMatchObject({ state: 'on', oldestAt: log?.oldestAt, windowsEnded: 0 })
})

test('one without the log reports that it is off, and no size that could be taken for a window', async () => {
  const off = await f.createRunning()
  const log = await waitUntil('its log is reported', async () => reported(off))
  expect(log).toMatchObject({ state: 'off', mode: null, oldestAt: null, points: 0, sizeBytes: 0 })
  // what it would take can be asked all the same
  await f.query(
    off,
    'create table written as select n, repeat(md5(n::text), 3) from generate_series(1, 20000) n',
  )
  await f.query(off, 'checkpoint')
  expect((await read(off)).sample).toBeNull()
  const { sample } = await read(off, true)
  expect(sample?.pages).toBeGreaterThanOrEqual(64)
  expect(sample?.imageBytes).toBeLessThan(sample?.pageBytes ?? 0)
  await f.query(off, 'ALTER EXTENSION flashback_log DROP FUNCTION polar_flashback_log_sample()')
  await f.query(off, 'DROP FUNCTION polar_flashback_log_sample()')
  expect((await read(off, true)).sample).toBeNull()
  await f.query(off, 'DROP EXTENSION flashback_log CASCADE')
  expect(await read(off)).toMatchObject({ log: null, points: [] })
  await waitUntil('the agent knows nothing of it', async () => (await reported(off)) === null)
})

test('a standby knows moments up to just before the last commit that it has replayed', async () => {
  const s = new StandbyFixture(f)
  const primary = await s.primary('ahead', {
    polar_enable_flashback_log: 'on',
    polar_enable_fast_recovery_area: 'on',
  })
  const standby = await s.standby(primary, 'behind')
  await f.query(primary, 'create table written (n int)')
  const [last] = await f.query<{ at: number }>(
    primary,
    'select (extract(epoch from timestamp) * 1000)::float8 as at from pg_last_committed_xact()',
  )
  await s.caughtUp(primary, standby.id)
  const { log } = await read(standby.id)
  expect(Math.round((log?.newestAt ?? 0) * 1_000)).toBe(Math.round(Number(last?.at) * 1_000) - 1)
  expect((await read(primary)).log?.newestAt).toBeNull()
})
