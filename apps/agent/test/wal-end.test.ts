import { randomUUID } from 'node:crypto'
import type { TaskResult } from '@floe/agent-contract'
import { compareLsn } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'
import { StandbyFixture } from './standby-fixture'

let f: AgentFixture
let s: StandbyFixture
beforeAll(async () => {
  f = await AgentFixture.start()
  s = new StandbyFixture(f)
})
afterAll(() => f.remove())

const flushed = async (id: string) =>
  (await f.query<{ lsn: string }>(id, 'select pg_current_wal_flush_lsn()::text as lsn'))[0]?.lsn as string
const isolate = (instanceId: string) =>
  s.must<TaskResult<'isolate-standby'>>({ kind: 'isolate-standby', instanceId })
const received = async (id: string, lsn: string) =>
  waitUntil('the standby has received it', async () => {
    const [row] = await f.query<{ there: boolean }>(
      id,
      `select pg_last_wal_receive_lsn() >= '${lsn}'::pg_lsn as there`,
    )
    return row?.there
  })

test('a standby with WAL to replay that was restarted without its primary says what is on its disk (F2)', async () => {
  const primary = await s.primary('behind')
  const { id } = await s.standby(primary, 'behind-2')
  await s.must({
    kind: 'change-settings',
    instanceId: id,
    changes: [{ name: 'recovery_min_apply_delay', value: '5min' }],
  })
  await f.query(primary, 'create table acknowledged as select n from generate_series(1, 20000) as n')
  const end = await flushed(primary)
  await received(id, end)
  await s.must({ kind: 'stop-instance', instanceId: primary, mode: 'immediate' })
  await s.must({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
  const [before] = await f.query<{ received: string | null; replayed: string }>(
    id,
    'select pg_last_wal_receive_lsn()::text as received, pg_last_wal_replay_lsn()::text as replayed',
  )
  expect(before?.received).toBeNull()
  expect(compareLsn(before?.replayed as string, end)).toBeLessThan(0)
  const reported = await waitUntil('a report of the life since', async () => {
    const seen = await f.observed(id)
    return seen?.state === 'running' && seen.replication ? seen.replication : null
  })
  expect(reported, 'no position rather than a wrong one').toMatchObject({
    endLsn: null,
    timeline: 1,
    ancestors: [],
  })
  const isolated = await isolate(id)
  expect(isolated).toMatchObject({ timeline: 1, ancestors: [], inRecovery: true })
  expect(compareLsn(isolated.endLsn as string, end)).toBeGreaterThanOrEqual(0)
  // it is promoted only with all of that, and says that commits wait for others than was asked for
  await f.query(id, `alter system set synchronous_standby_names = ''`)
  const promoted = await s.must<TaskResult<'promote-instance'>>({
    kind: 'promote-instance',
    instanceId: id,
    beyondLsn: null,
    atLeastLsn: isolated.endLsn,
    standbyNames: 'ANY 1 ("elsewhere")',
  })
  expect(await f.query(id, 'select count(*)::int as n from acknowledged')).toEqual([{ n: 20_000 }])
  expect(promoted).toMatchObject({ timeline: 2, standbyNames: null, ancestors: [{ timeline: 1 }] })
  expect(compareLsn(promoted.ancestors?.[0]?.end as string, end)).toBeGreaterThanOrEqual(0)
}, 120_000)

test('members on a later timeline say which, and where those before ended, also once they are fenced', async () => {
  const primary = await s.primary('later')
  const { id } = await s.standby(primary, 'later-2')
  const third = randomUUID()
  const upstream = await s.admit(primary, third, 'later-3')
  await s.must({ kind: 'clone-standby', instanceId: third, upstream, replace: false })
  await s.must({ kind: 'follow-upstream', instanceId: third, upstream })
  await f.query(primary, 'create role batch; alter role batch set synchronous_commit = local')
  await s.caughtUp(primary, id)
  await s.must({ kind: 'fence-instance', instanceId: primary, reason: 'a test' })
  const promoted = await s.must<TaskResult<'promote-instance'>>({
    kind: 'promote-instance',
    instanceId: id,
    beyondLsn: null,
    atLeastLsn: null,
    standbyNames: '',
  })
  const upstreamNow = await s.admitPrepared(id, 'later-3', null, true)
  await s.must({ kind: 'repoint-standby', instanceId: third, upstream: upstreamNow, wait: true })
  await f.query(id, 'create table on_two (n int)')
  await received(third, await flushed(id))
  const { ancestors } = promoted
  expect(ancestors).toHaveLength(1)
  const commitModes = [{ database: null, role: 'batch', commitMode: 'local' }]
  expect(promoted).toMatchObject({ standbyNames: '', synchronousCommit: 'on', commitModes })
  const seen = await waitUntil('its report tells the new timeline', async () => {
    const { replication } = (await f.observed(third)) ?? {}
    return replication?.timeline === 2 ? replication : null
  })
  expect(seen.ancestors).toEqual(ancestors)
  expect(seen.commitModes).toEqual(commitModes)
  const end = await flushed(id)
  await received(third, end)
  const isolated = await isolate(third)
  expect(isolated).toMatchObject({ timeline: 2, ancestors })
  expect(compareLsn(isolated.endLsn as string, end)).toBeGreaterThanOrEqual(0)
  // without a receiver, and before any restartpoint on that timeline
  const alone = await waitUntil('its report without a receiver', async () => {
    const { replication } = (await f.observed(third)) ?? {}
    return replication && replication.receiver === null ? replication : null
  })
  expect(alone).toMatchObject({ timeline: 2, ancestors })
  // a primary that was promoted just now, and has made no checkpoint on its timeline since
  const fenced = await s.must<TaskResult<'fence-instance'>>({
    kind: 'fence-instance',
    instanceId: id,
    reason: 'a test',
  })
  expect(fenced).toMatchObject({ timeline: 2, ancestors })
  expect(compareLsn(fenced.endLsn as string, end)).toBeGreaterThanOrEqual(0)
}, 120_000)
