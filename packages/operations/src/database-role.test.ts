import { type ClusterObserved, FaultError, InstanceId, operationRecord, verifierParts } from '@floe/domain'
import { expect, test } from 'vitest'
import { operationDefinition } from './definitions'
import { PATIENCE } from './patience'
import type { Guarded, StepContext } from './step'

const instanceId = InstanceId.parse('0d8f2a9e-6c51-4a30-9f4e-1d2c3b4a5f60')
const kinds = ['create-database-role', 'change-database-role', 'drop-database-role'] as const
type Kind = (typeof kinds)[number]

const inputOf = (kind: Kind, more: object = {}) =>
  operationRecord(kind).input.parse({ instanceId, role: 'app', ...more })
/** The code of the refusal, and its hint; null where it is ordered. */
async function ordered(kind: Kind, more: object = {}, memberRole: 'primary' | 'standby' = 'primary') {
  try {
    await operationDefinition(kind).guard?.({
      input: inputOf(kind, more),
      instance: { name: 'demo', cluster: { memberRole } },
      readCluster: async () => ({
        primaryInstanceId: 'p',
        members: [
          { instanceId, name: 'demo' },
          { instanceId: 'p', name: 'main' },
        ],
      }),
    } as unknown as Guarded)
    return null
  } catch (error) {
    if (!(error instanceof FaultError)) throw error
    return [error.fault.code, error.fault.hint ?? null]
  }
}

test.each(kinds)('%s is ordered on the primary, and a refusal names it', async (kind) => {
  expect(await ordered(kind, { login: true })).toBeNull()
  expect(await ordered(kind, { login: true }, 'standby')).toEqual([
    'instance.is_standby',
    'Name the primary: "main".',
  ])
  expect(operationDefinition(kind).plan(inputOf(kind) as never, { state: 'running' })).toMatchObject([
    { title: expect.stringContaining('role "app"') },
  ])
})

test.each(kinds)('%s is refused of roles of Floe and of predefined ones', async (kind) => {
  const of = (role: string) => ordered(kind, { role, login: true })
  for (const role of ['floe', 'page_repair', 'floe_standby_one_0123456789abcdef', 'floe_repair_x'])
    expect([role, await of(role)]).toEqual([role, ['role.of_floe', null]])
  for (const role of ['pg_monitor', 'pg_mine', 'public', 'none'])
    expect([role, await of(role)]).toEqual([role, ['role.reserved', null]])
  // names that only look like those
  for (const role of ['Floe', 'floe_app', 'PG_MONITOR', 'pgbench', 'postgres'])
    expect([role, await of(role)]).toEqual([role, null])
})

test('predefined roles are granted, but for those that reach the host; Floe’s own are not', async () => {
  const granted = (role: string) => ordered('change-database-role', { grant: [role] })
  expect(await granted('pg_monitor')).toBeNull()
  expect(await granted('pg_read_server_files')).toEqual(['role.reserved', null])
  expect(await granted('floe')).toEqual(['role.of_floe', null])
  expect(await ordered('create-database-role', { memberOf: ['pg_execute_server_program'] })).toEqual([
    'role.reserved',
    null,
  ])
})

test('a change that changes nothing, or grants what it revokes, is refused', async () => {
  expect((await ordered('change-database-role'))?.[0]).toBe('role.no_change')
  expect((await ordered('change-database-role', { grant: ['a'], revoke: ['a'] }))?.[0]).toBe(
    'role.contradiction',
  )
  expect(await ordered('change-database-role', { passwordVerifier: null })).toBeNull()
})

test('a name is one that PostgreSQL stores as it is', () => {
  const accepts = (role: string) =>
    operationRecord('drop-database-role').input.safeParse({ instanceId, role }).success
  for (const role of ['a', 'a"b', "it's", 'ä'.repeat(31), 'x'.repeat(63), ' ', '-- '])
    expect([role, accepts(role)]).toEqual([role, true])
  // PostgreSQL would cut it at 63 bytes, and the role would have another name
  for (const role of ['', 'x'.repeat(64), 'ä'.repeat(32), 'a\0b', 'a\nb', 'a\u001b[2J', 'half \ud83d'])
    expect([role, accepts(role)]).toEqual([role, false])
})

test('the verifier is sent to the agent, and is a part that nothing shows', async () => {
  const passwordVerifier = `SCRAM-SHA-256$4096:c2FsdA==$${'a'.repeat(43)}=:${'b'.repeat(43)}=`
  const started: unknown[] = []
  for (const kind of kinds.slice(0, 2)) {
    const input = inputOf(kind, { passwordVerifier, login: true })
    expect(Object.keys(input).filter((part) => verifierParts.some((name) => name === part))).toEqual([
      'passwordVerifier',
    ])
    const [step] = operationDefinition(kind).plan(input as never, { state: 'running' })
    await operationDefinition(kind).steps[step?.name as never]?.run({
      operationId: 'o',
      input,
      step: { name: step?.name, attempt: 1, taskLogSeq: 0, startedAt: new Date(0) },
      cancelAskedAt: null,
      now: new Date(0),
      atWorkSince: new Date(0),
      patience: PATIENCE,
      results: {},
      readCluster: async () =>
        ({
          members: [{ instanceId, name: 'demo', hostId: 'h', hostName: 'db1' }],
        }) as unknown as ClusterObserved,
      agentOf: () => ({
        checkTask: async () => ({ state: 'not-started', log: [] }),
        startTask: async (asked: { task: unknown }) => started.push(asked.task),
      }),
    } as unknown as StepContext)
  }
  expect(started).toMatchObject([
    { kind: 'create-database-role', role: 'app', passwordVerifier, memberOf: [], connectionLimit: -1 },
    { kind: 'change-database-role', role: 'app', passwordVerifier, login: true },
  ])
})
