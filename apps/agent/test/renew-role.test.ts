import { readFileSync } from 'node:fs'
import type { TaskResult, Upstream } from '@floe/agent-contract'
import { foreseeableLogin, InstanceName, newLogin } from '@floe/domain'
import { renameRolesInFiles, useForeseeableRoles, waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'
import { StandbyFixture } from './standby-fixture'

/** A standby of an earlier version comes to replicate as a role that nobody foresees, while it runs and is waited for by commits. */
let f: AgentFixture
let s: StandbyFixture
let primary: string
let standby: string
let upstream: Upstream
const FORMER = foreseeableLogin('standby', 'beta-2')
let prepared: TaskResult<'prepare-role'>

beforeAll(async () => {
  f = await AgentFixture.start()
  s = new StandbyFixture(f)
  primary = await s.primary('beta')
  const made = await s.standby(primary, 'beta-2')
  standby = made.id
  upstream = made.upstream
  await s.must({ kind: 'set-synchronous', instanceId: primary, standbyNames: 'FIRST 1 ("beta-2")' })
  await f.agent.end()
  const renamed = useForeseeableRoles(f.agent.home, standby)
  for (const id of [primary, standby]) renameRolesInFiles(f.agent.home, id, renamed)
  await f.queryPort(
    primary,
    `set synchronous_commit to local; create role dba login createrole;
     alter role ${upstream.role} rename to ${FORMER}; grant ${FORMER} to dba`,
  )
  for (const id of [primary, standby]) await f.queryPort(id, 'select pg_reload_conf()')
  await f.agent.start()
  await streamingAs(FORMER)
})
afterAll(() => f.remove())

const senders = () =>
  f.query<{ role: string; sync: string }>(
    primary,
    `select usename as role, sync_state as sync from pg_stat_replication where state = 'streaming'`,
  )
const streamingAs = (role: string) =>
  waitUntil(`it streams as ${role}`, async () => (await senders()).some((r) => r.role === role), 20_000)
const replication = async () => (await f.observed(standby))?.logins?.replication
const hba = () => readFileSync(`${f.dataDirectory(primary)}/floe_hba.conf`, 'utf8')
const conninfo = () => readFileSync(`${f.dataDirectory(standby)}/floe.cluster.conf`, 'utf8')
const roles = async () =>
  (
    await f.query<{ role: string }>(
      primary,
      `select rolname as role from pg_roles where rolname like 'floe\\_standby\\_%' order by 1`,
    )
  ).map(({ role }) => role)
const replicateAs = (role: string) => ({
  kind: 'replicate-as' as const,
  instanceId: standby,
  upstream: { ...upstream, role },
  former: FORMER,
})
const retire = (role: string, successor: { name: InstanceName; role: string } | null, stay: string[]) =>
  s.must<TaskResult<'retire-roles'>>({
    kind: 'retire-roles',
    instanceId: primary,
    retired: [{ role, successor }],
    roles: stay,
  })

test('a role is made up, and the one it comes as is reported until it comes as the other', async () => {
  expect(await replication()).toBe(FORMER)
  const prepare = () => s.must<TaskResult<'prepare-role'>>({ kind: 'prepare-role', instanceId: standby })
  prepared = await prepare()
  expect(prepared).toMatchObject({
    former: FORMER,
    role: expect.stringMatching(/^floe_standby_beta_2_[0-9a-f]{16}$/),
  })
  expect((await prepare()).role).toBe(prepared.role)
  expect(await replication()).toBe(FORMER)
  // it follows nobody, and so comes as none
  expect(await s.must({ kind: 'prepare-role', instanceId: primary })).toMatchObject({
    role: null,
    former: null,
  })
})

test('it is created beside the one of before, and both are let in', async () => {
  const { role, verifier } = prepared
  await s.must({
    kind: 'admit-roles',
    instanceId: primary,
    logins: [{ role, verifier }],
    roles: [FORMER, role],
  })
  expect(await roles()).toEqual([FORMER, role])
  expect(hba()).toContain(`"${FORMER}"`)
  expect(hba()).toContain(`"${role}"`)
  expect(await senders()).toEqual([{ role: FORMER, sync: 'sync' }])
})

test('on a standby no role is made', async () => {
  const { role, verifier } = prepared
  for (const task of [
    { kind: 'admit-roles', instanceId: standby, logins: [{ role, verifier }], roles: [role] },
    {
      kind: 'retire-roles',
      instanceId: standby,
      retired: [{ role: FORMER, successor: null }],
      roles: [role],
    },
  ])
    expect((await s.run(task)).fault?.code).toBe('instance.is_standby')
})

describe('a role as which it cannot come', () => {
  const UNKNOWN = newLogin('standby', 'beta-2', '0123456789abcdef')

  test('is given up: it streams as before, and that is said', async () => {
    const before = conninfo()
    const refused = await s.run(replicateAs(UNKNOWN))
    expect(refused.fault).toMatchObject({
      code: 'standby.role_refused',
      detail: expect.stringContaining(`It goes on as role "${FORMER}"`),
    })
    expect(conninfo()).toBe(before)
    expect(await senders()).toEqual([{ role: FORMER, sync: 'sync' }])
    expect(await replication()).toBe(FORMER)
  })

  test('is given up also when the agent was killed in between', async () => {
    const before = conninfo()
    const key = await f.begin(replicateAs(UNKNOWN) as never)
    await waitUntil('its new role is written', () => conninfo().includes(UNKNOWN), 10_000, 5)
    await f.agent.end('SIGKILL')
    await f.agent.start()
    expect((await f.ended(key)).fault?.code).toBe('standby.role_refused')
    expect(conninfo()).toBe(before)
    await streamingAs(FORMER)
    expect(await replication()).toBe(FORMER)
  })

  test('and the one of before stays, because nobody comes as another one', async () => {
    const successor = { name: InstanceName.parse('beta-2'), role: UNKNOWN }
    const { role } = prepared as { role: string }
    expect(await retire(FORMER, successor, [role])).toEqual({ retired: [], kept: [FORMER] })
    expect(await roles()).toEqual([FORMER, role])
    expect(hba()).toContain(`"${FORMER}"`)
  })
})

test('it comes as its new role without a restart, and no commit is acknowledged without it', async () => {
  const { role } = prepared as { role: string }
  const started = (await f.observed(standby))?.postmasterPid
  const writer = await f.connect(primary)
  await writer.query('create table kept as select 0 as n')
  let going = true
  let written = 0
  const writing = (async () => {
    while (going) await writer.query(`insert into kept values (${++written})`)
  })()
  try {
    expect(await s.must(replicateAs(role))).toEqual({ streaming: true })
    expect(await replication()).toBe(role)
    const at = written
    await waitUntil('commits go on', () => written > at + 5)
  } finally {
    going = false
    await writing
    await writer.end()
  }
  expect(await senders()).toEqual([{ role, sync: 'sync' }])
  expect((await f.observed(standby))?.postmasterPid).toBe(started)
  expect(await f.query(primary, 'show synchronous_standby_names')).toEqual([
    { synchronous_standby_names: 'FIRST 1 ("beta-2")' },
  ])
  await s.caughtUp(primary, standby)
  expect(await f.query(standby, 'select count(*)::int as n, max(n) as last from kept')).toEqual([
    { n: written + 1, last: written },
  ])
})

test('then the role of before goes, with who had been granted it and with its sessions', async () => {
  const { role } = prepared as { role: string }
  const file = `${f.installation.instancesDirectory}/${standby}/replication.pgpass`
  const password = readFileSync(file, 'utf8').trim().split(':').at(-1) as string
  const port = (await f.observed(primary))?.port
  const ssl = { rejectUnauthorized: false }
  const session = new pg.Client({
    host: '127.0.0.1',
    port,
    user: FORMER,
    database: 'postgres',
    password,
    ssl,
  })
  session.on('error', () => {})
  await session.connect()
  let ended = false
  session.on('end', () => {
    ended = true
  })
  const successor = { name: InstanceName.parse('beta-2'), role }
  // of a cluster that this instance once was a standby of; and one that a person made
  await f.query(
    primary,
    `create role floe_standby_gone login replication; create role floe_standby_mine login;
     grant execute on function pg_read_binary_file(text) to floe_standby_gone`,
  )
  expect(await retire(FORMER, successor, [role])).toEqual({
    retired: [FORMER, 'floe_standby_gone'],
    kept: [],
  })
  expect(await roles()).toEqual([role, 'floe_standby_mine'].sort())
  await f.query(primary, 'drop role floe_standby_mine')
  await waitUntil('its session has ended', () => ended)
  expect(await roles()).toEqual([role])
  expect(hba()).not.toContain(`"${FORMER}"`)
  expect(
    await f.query(
      primary,
      `select has_function_privilege('dba', 'pg_read_binary_file(text)', 'execute') as reads`,
    ),
  ).toEqual([{ reads: false }])
  // a second time there is nothing left to do
  expect(await retire(FORMER, successor, [role])).toEqual({ retired: [], kept: [] })
  expect(await s.must({ kind: 'prepare-role', instanceId: standby })).toEqual({
    role,
    former: null,
    verifier: null,
  })
})

test('one that does not run takes its role when it starts', async () => {
  const { role, verifier } = prepared
  const other = newLogin('standby', 'beta-2', 'fedcba9876543210')
  await s.must({ kind: 'stop-instance', instanceId: standby, mode: 'fast' })
  await f.query(primary, `set synchronous_commit to local; alter role ${role} rename to ${other}`)
  await s.must({ kind: 'admit-roles', instanceId: primary, logins: [{ role, verifier }], roles: [role] })
  expect(await s.must({ ...replicateAs(role as string), former: other })).toEqual({ streaming: false })
  expect(await retire(other, null, [role as string])).toEqual({ retired: [other], kept: [] })
  await s.must({ kind: 'start-instance', instanceId: standby })
  await streamingAs(role as string)
})
