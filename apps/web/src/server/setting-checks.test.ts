import { answerSettingCheck, takeSettingChecks } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { HostId, InstanceId } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import { TRPCError } from '@trpc/server'
import { afterAll, afterEach, beforeAll, expect, inject, test, vi } from 'vitest'
import { faultOf } from './faults'
import { type ThrowawayConsole, throwawayConsole } from './testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())
afterEach(() => {
  vi.restoreAllMocks()
})

const changes = [{ name: 'work_mem', value: '8MB' }]
const result = {
  name: 'work_mem',
  oldValue: '4MB',
  newValue: '8MB',
  impact: 'reload' as const,
  fault: null,
}
const instance = async () => InstanceId.parse((await insertTestInstance(it.database)).instanceId)
const audited = async (instanceId: string) =>
  (
    await it.database.pool.query(
      `SELECT outcome, detail FROM audit_event WHERE action = 'setting.check' AND "objectId" = $1 ORDER BY id`,
      [instanceId],
    )
  ).rows as { outcome: string; detail: Record<string, unknown> }[]
/** What a controller does with the next check, for each of its members; null: one does not answer. */
const answerNext = (...members: (object[] | null)[]) =>
  waitUntil('a check is asked', async () => {
    const [taken] = await takeSettingChecks(it.database.pool, { leaseMs: 10_000, limit: 1 })
    if (!taken) return null
    const answers = (members.length > 0 ? members : [[result]]).map((results) => ({
      fault: results ? null : { code: 'member.unreachable', message: 'it does not answer' },
      results: results ?? [],
    }))
    await answerSettingCheck(it.database.pool, taken.checkId, answers)
    return taken
  })
const faultOfCall = async (asked: Promise<unknown>) => {
  const error = await asked.then(
    () => undefined,
    (e: unknown) => e,
  )
  return error instanceof TRPCError ? faultOf(error).code : 'it was not refused'
}

test('a reviewed change set is one check and one audit row, however often it is asked at once', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const instanceId = await instance()
  // who asked after it was answered would have asked for another one
  const waiting = vi.spyOn(it.ports.changes, 'onCheck')
  const both = [1, 2, 3].map(() => caller.setting.check({ scope: { instanceId }, changes }))
  await waitUntil('all three wait', () => waiting.mock.calls.length === 3)
  const taken = await answerNext()
  for (const answer of await Promise.all(both)) expect(answer.members[0]?.results).toEqual([result])
  expect(await audited(instanceId)).toEqual([
    { outcome: 'allowed', detail: { checkId: taken.checkId, settings: ['work_mem'] } },
  ])
  // another set of changes is another one
  const other = caller.setting.check({ scope: { instanceId }, changes: [{ name: 'work_mem', value: '9MB' }] })
  await answerNext()
  await other
  expect(await audited(instanceId)).toHaveLength(2)
})

test('settings that run programs are checked for an admin only, and the row names the class', async () => {
  const made = await insertTestInstance(it.database)
  const instanceId = InstanceId.parse(made.instanceId)
  const hostId = HostId.parse(made.hostId)
  const programs = [{ name: 'shared_preload_libraries', value: 'auto_explain' }]
  const operator = await it.callerOf((await it.signedIn('operator')).headers)
  const runs = 'setting.runs_programs'
  expect(await faultOfCall(operator.setting.check({ scope: { instanceId }, changes: programs }))).toBe(runs)
  expect(
    await faultOfCall(
      operator.instance.check({ hostId, settings: { shared_preload_libraries: 'auto_explain' } }),
    ),
  ).toBe(runs)
  const admin = await it.callerOf((await it.signedIn('admin')).headers)
  const asked = admin.setting.check({ scope: { instanceId }, changes: programs })
  await answerNext()
  await asked
  expect((await audited(instanceId)).map((r) => [r.outcome, r.detail.class])).toEqual([
    ['denied', 'runs-programs'],
    ['allowed', 'runs-programs'],
  ])
})

test('without a controller it is said so in time, and asked again it is the same check', async () => {
  const { headers } = await it.signedIn('operator')
  const caller = await it.callerOf(headers)
  const hasty = await it.callerOf(headers, { checkTimes: { takenMs: 50, answeredMs: 60_000 } })
  const instanceId = await instance()
  expect(await faultOfCall(hasty.setting.check({ scope: { instanceId }, changes }))).toBe(
    'setting.check_not_taken',
  )
  const again = caller.setting.check({ scope: { instanceId }, changes })
  await answerNext()
  expect((await again).members[0]?.results).toEqual([result])
  expect(await audited(instanceId)).toHaveLength(1)
})

test('nobody waits longer than the deadline: it is said that the check goes on, and asked again it is the same one', async () => {
  const { headers } = await it.signedIn('operator')
  const caller = await it.callerOf(headers)
  const hasty = await it.callerOf(headers, { checkTimes: { takenMs: 60_000, answeredMs: 50 } })
  const instanceId = await instance()
  const asked = await hasty.setting.check({ scope: { instanceId }, changes }).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(asked).toBeInstanceOf(TRPCError)
  expect(faultOf(asked as TRPCError)).toMatchObject({
    code: 'setting.check_running',
    detail: expect.stringContaining('the host may be starting other engines'),
    hint: expect.stringContaining('the next try waits for the same answer'),
  })
  const again = caller.setting.check({ scope: { instanceId }, changes })
  await answerNext()
  expect((await again).members[0]?.results).toEqual([result])
  expect(await audited(instanceId)).toHaveLength(1)
})

test('a check says whether it restarts: never one instance, a cluster unless it is told not to', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const instanceId = await instance()
  const { rows } = await it.database.pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [
    instanceId,
  ])
  const { clusterId } = rows[0]
  const more = [{ name: 'max_connections', value: '200' }]
  const raised = {
    ...{ name: 'max_connections', oldValue: '100', newValue: '200', impact: 'restart', fault: null },
    ...{ oldNumber: 100, newNumber: 200 },
  }
  const checked = async (input: Parameters<typeof caller.setting.check>[0]) => {
    const asked = caller.setting.check(input)
    await answerNext([raised])
    return asked
  }
  const waits = expect.stringContaining('comes into force with the next one')
  const turn = { changes: more, restart: false }
  const alone = await checked({ scope: { instanceId }, changes: more })
  expect(alone).toMatchObject({ faults: [], notes: [waits] })
  expect(alone.phases).toMatchObject([{ phase: 'primary', members: [turn] }])
  // what only the order of members is for stays inside
  expect(alone.members[0]?.results[0]).not.toHaveProperty('newNumber')

  const ofOne = await checked({ scope: { clusterId }, changes: more })
  expect(ofOne.members.map((m) => m.instanceId)).toEqual([instanceId])
  expect(ofOne.phases).toMatchObject([{ members: [{ ...turn, restart: true }] }])
  expect(ofOne.notes).toEqual([expect.stringMatching(/^The instance is restarted: /)])
  // the same question to the engines a moment later is the same check
  const later = await caller.setting.check({ scope: { clusterId }, changes: more, restart: false })
  expect(later).toMatchObject({ phases: [{ members: [turn] }], notes: [waits] })
  expect(later.faults.map((f) => f.code)).not.toContain('setting.order_needs_restart')

  // a member of several may not have it of its own
  const standby = await instance()
  await it.database.pool.query(
    `UPDATE instance SET "clusterId" = $2, "memberRole" = 'standby' WHERE id = $1`,
    [standby, clusterId],
  )
  const one = await caller.setting.check({ scope: { instanceId }, changes: more })
  expect(one.faults.map((f) => f.code)).toEqual(['setting.of_cluster'])
  expect(one.members[0]?.results[0]?.fault?.code).toBe('setting.of_cluster')
})

test('what all members say is said once, and what one of them says with its name', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const [first, second] = [await instance(), await instance()]
  const { pool } = it.database
  const { rows } = await pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [first])
  const { clusterId } = rows[0]
  await pool.query(`UPDATE instance SET "clusterId" = $2, "memberRole" = 'standby' WHERE id = $1`, [
    second,
    clusterId,
  ])
  const warning = { code: 'setting.pins_sessions', message: 'no session would move', hint: 'Leave it off.' }
  const checked = async (value: string, ...members: (object[] | null)[]) => {
    const asked = caller.setting.check({ scope: { clusterId }, changes: [{ name: 'work_mem', value }] })
    await answerNext(...members)
    return asked
  }
  const warned = await checked('8MB', [{ ...result, warning }], [{ ...result, warning }])
  expect(warned.members.map((m) => m.results.map((r) => r.warning?.code))).toEqual([
    [warning.code],
    [warning.code],
  ])
  expect(warned.warnings).toEqual([warning])
  const fault = { code: 'setting.port_taken', message: 'port 5433 is in use on this host' }
  const refused = await checked('9MB', [result], [{ ...result, fault, warning }])
  const name = refused.members[1]?.name
  expect(refused.warnings).toEqual([{ ...warning, message: `member "${name}": ${warning.message}` }])
  expect(refused.faults).toContainEqual({ ...fault, message: `member "${name}": ${fault.message}` })
  // one that does not answer says nothing else
  const silent = await checked('10MB', null, [{ ...result, warning }])
  expect(silent.warnings).toEqual([warning])
})
