import { readFileSync } from 'node:fs'
import type { TaskResult } from '@floe/agent-contract'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { InstanceName } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'
import { StandbyFixture } from './standby-fixture'

/**
 * A person with CREATEROLE, and nothing else, at an instance that Floe makes a standby of: no name chosen by that person
 * gets into pg_hba.conf, and no role that the person made, or knew of before, gets a right.
 */
let f: AgentFixture
let s: StandbyFixture
let primary: string
const DBA_PASSWORD = 'a person'

beforeAll(async () => {
  f = await AgentFixture.start(20)
  s = new StandbyFixture(f)
  primary = await s.primary('alpha')
  await f.query(primary, `create role dba login createrole password '${DBA_PASSWORD}'`)
})
afterAll(() => f.remove())

async function asRole<T>(
  user: string,
  password: string,
  sql: string,
  more: pg.ClientConfig = {},
): Promise<T[]> {
  const port = (await f.observed(primary))?.port
  const client = new pg.Client({ host: '127.0.0.1', port, user, database: 'postgres', password, ...more })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows as T[]
  } finally {
    await client.end()
  }
}
const asDba = <T>(sql: string) => asRole<T>('dba', DBA_PASSWORD, sql)
const hba = () => readFileSync(`${f.dataDirectory(primary)}/floe_hba.conf`, 'utf8')
const rules = () =>
  f.query<{ user_name: string[]; auth_method: string; error: string | null }>(
    primary,
    `select user_name, auth_method, error from pg_hba_file_rules order by rule_number`,
  )

describe('a role whose name is a line of pg_hba.conf', () => {
  const INJECTED = 'floe_repair_ all trust\nhost all all all trust #'
  beforeAll(async () => {
    await asDba(`create role ${pg.escapeIdentifier(INJECTED)}`)
  })
  afterAll(() => asDba(`drop role ${pg.escapeIdentifier(INJECTED)}`))

  test('is in no line of it after a standby was made, and nobody comes in without a password', async () => {
    const { id } = await s.standby(primary, 'alpha-2')
    expect(hba()).not.toContain('trust')
    expect((await rules()).filter((rule) => rule.auth_method === 'trust' || rule.error !== null)).toEqual([])
    await expect(asRole('postgres', 'not the password', 'select 1')).rejects.toThrow(
      'password authentication failed',
    )
    await f.must({ kind: 'delete-instance', instanceId: id, confirmName: 'alpha-2', keepFiles: false })
    await s.dismiss(primary, 'alpha-2', false)
    expect(hba()).not.toContain('trust')
  })

  test('is not dropped with roles of Floe’s', async () => {
    await admitRepair([{ name: 'alpha', role: 'floe_repair_alpha_0123456789abcdef' }])
    await admitRepair([])
    expect(
      await f.query(primary, `select 1 from pg_roles where rolname = ${pg.escapeLiteral(INJECTED)}`),
    ).toHaveLength(1)
  })
})

const admitRepair = (members: { name: string; role?: string }[]) =>
  s.must<TaskResult<'admit-page-repair'>>({
    kind: 'admit-page-repair',
    instanceId: primary,
    members: members.map(({ name, role }) => ({
      name: InstanceName.parse(name),
      verifier: scramVerifier('of the member'),
      ...(role === undefined ? {} : { role }),
    })),
  })

const READ = 'pg_catalog.polar_page_repair_read(oid[], oid[], oid[], int4[], int8[])'
const mayRead = async (role: string) =>
  (
    await f.query<{ may: boolean }>(
      primary,
      `select has_function_privilege('${role}', '${READ}', 'execute') as may`,
    )
  )[0]?.may

describe('roles that a person makes beforehand', () => {
  test('"page_repair" gets no right', async () => {
    await asDba('create role page_repair; grant page_repair to dba')
    const role = 'floe_repair_alpha_00000000000000aa'
    await admitRepair([{ name: 'alpha', role }])
    expect(await mayRead('page_repair')).toBe(false)
    expect(await mayRead('dba')).toBe(false)
    expect(await mayRead(role)).toBe(true)
    await expect(
      asDba(`select pages from polar_page_repair_read('{0}', '{0}', '{1260}', '{0}', '{0}')`),
    ).rejects.toThrow('permission denied')
    await admitRepair([])
    expect(await f.query(primary, `select 1 from pg_roles where rolname = '${role}'`)).toEqual([])
    expect(await f.query(primary, `select 1 from pg_roles where rolname = 'page_repair'`)).toHaveLength(1)
    await asDba('drop role page_repair')
  })

  test('the name that a standby’s role used to have is of no use, and is left alone', async () => {
    await asDba('create role floe_standby_alpha_3; grant floe_standby_alpha_3 to dba')
    const { id } = await s.standby(primary, 'alpha-3')
    const [squatted] = await f.query(
      primary,
      `select rolreplication as replicates, has_function_privilege(rolname, 'pg_read_binary_file(text)', 'execute') as reads
         from pg_roles where rolname = 'floe_standby_alpha_3'`,
    )
    expect(squatted).toEqual({ replicates: false, reads: false })
    expect(hba()).not.toContain('"floe_standby_alpha_3"')
    await expect(asDba(`select pg_read_binary_file('floe_server.pem')`)).rejects.toThrow('permission denied')
    await f.must({ kind: 'delete-instance', instanceId: id, confirmName: 'alpha-3', keepFiles: false })
    await s.dismiss(primary, 'alpha-3', false)
    await asDba('drop role floe_standby_alpha_3')
  })

  test('a role that exists is refused with the reason, and nothing is half done', async () => {
    // also were the name known: the role is not taken over, and the refusal says why and what to do
    const role = 'floe_standby_alpha_4_0123456789abcdef'
    await asDba(`create role ${role} login password 'mine'`)
    const refused = await s.run({
      kind: 'admit-standby',
      instanceId: primary,
      standbyName: 'alpha-4',
      verifier: scramVerifier('of the member'),
      slot: true,
      role,
      roles: [role],
    })
    expect(refused.fault).toMatchObject({
      code: 'role.not_ours',
      message: `role "${role}" is not as Floe made it, or was not made by Floe`,
      detail: expect.stringMatching(/lacks rights.*it is granted to dba/),
      hint: expect.stringContaining(`DROP ROLE "${role}"`),
    })
    expect(
      await f.query(
        primary,
        `select rolreplication, (select count(*)::int from pg_replication_slots where slot_name = 'floe_alpha_4') as slots
           from pg_roles where rolname = '${role}'`,
      ),
    ).toEqual([{ rolreplication: false, slots: 0 }])
    const tls = { ssl: { rejectUnauthorized: false } }
    expect(await asRole(role, 'mine', 'select 1 as n', tls)).toEqual([{ n: 1 }])
    await asDba(`drop role ${role}`)
  })

  test('a transaction that keeps roles locked is waited for, and then named', async () => {
    const port = (await f.observed(primary))?.port
    const open = new pg.Client({
      host: '127.0.0.1',
      port,
      user: 'dba',
      database: 'postgres',
      password: DBA_PASSWORD,
    })
    await open.connect()
    try {
      await open.query('begin; create role held')
      const refused = await s.run({
        kind: 'admit-page-repair',
        instanceId: primary,
        members: [
          { name: 'alpha', verifier: scramVerifier('x'), role: 'floe_repair_alpha_00000000000000bb' },
        ],
      })
      expect(refused.fault?.code).toBe('role.locked')
    } finally {
      await open.end()
    }
  }, 60_000)
})

describe('what Floe made', () => {
  let role: string
  let id: string
  beforeAll(async () => {
    id = (await s.standby(primary, 'alpha-5')).id
    role = s.roles.get('alpha-5') as string
  })
  const readmit = async () => {
    const prepared = await s.must<TaskResult<'prepare-standby'>>({
      kind: 'prepare-standby',
      instanceId: id,
      name: 'alpha-5',
    })
    return s.run({
      kind: 'admit-standby',
      instanceId: primary,
      standbyName: 'alpha-5',
      verifier: prepared.replicationVerifier,
      slot: true,
      role: prepared.replicationRole,
      roles: [prepared.replicationRole],
    })
  }

  test('is admitted again under the same name', async () => {
    expect(await readmit()).toMatchObject({ state: 'succeeded', result: { upstream: { role } } })
  })

  test('cannot be granted, altered or dropped by a person with CREATEROLE', async () => {
    for (const sql of [
      `grant ${role} to dba`,
      `alter role ${role} password 'mine'`,
      `alter role ${role} set search_path = dba`,
      `drop role ${role}`,
    ])
      await expect(asDba(sql)).rejects.toThrow('permission denied')
  })

  test.each([
    ['grant %s to dba', 'revoke %s from dba', /it is granted to dba/],
    ['grant pg_monitor to %s', 'revoke pg_monitor from %s', /it is a member of pg_monitor/],
    ['alter role %s set work_mem = 64', 'alter role %s reset all', /settings are set for it/],
    ['alter role %s createrole', 'alter role %s nocreaterole', /may create roles/],
    ['alter role %s connection limit 1', 'alter role %s connection limit -1', /a connection limit/],
  ])('changed by a superuser (%s) is refused until it is as it was', async (change, back, reason) => {
    await f.query(primary, change.replace('%s', role))
    expect((await readmit()).fault).toMatchObject({
      code: 'role.not_ours',
      detail: expect.stringMatching(reason),
    })
    await f.query(primary, back.replace('%s', role))
    expect((await readmit()).state).toBe('succeeded')
  })

  test('loses its rights when it goes, also where something keeps it from being dropped', async () => {
    await f.query(primary, `create table kept_by_role (n int); alter table kept_by_role owner to ${role}`)
    await f.must({ kind: 'delete-instance', instanceId: id, confirmName: 'alpha-5', keepFiles: false })
    await s.dismiss(primary, 'alpha-5', false)
    expect(
      await f.query(
        primary,
        `select rolreplication, rolcanlogin, has_function_privilege(rolname, 'pg_read_binary_file(text)', 'execute') as reads
           from pg_roles where rolname = '${role}'`,
      ),
    ).toEqual([{ rolreplication: false, rolcanlogin: false, reads: false }])
    expect(hba()).not.toContain(role)
    await f.query(primary, `drop table kept_by_role; drop role ${role}`)
  })
})

test('roles of an earlier version, and what a person had grabbed of them, lose their rights when they are renewed', async () => {
  await f.query(
    primary,
    `create role page_repair nologin; grant execute on function ${READ} to page_repair;
     create role floe_repair_alpha login; grant page_repair to floe_repair_alpha; grant page_repair to dba;
     create role floe_standby_alpha_6 login replication;
     grant execute on function pg_ls_dir(text, boolean, boolean), pg_stat_file(text, boolean),
       pg_read_binary_file(text), pg_read_binary_file(text, bigint, bigint, boolean) to floe_standby_alpha_6;
     grant floe_standby_alpha_6 to dba`,
  )
  expect(await mayRead('dba')).toBe(true)
  await admitRepair([{ name: 'alpha', role: 'floe_repair_alpha_00000000000000cc' }])
  expect(await mayRead('dba')).toBe(false)
  const { id } = await s.standby(primary, 'alpha-6')
  expect(
    await f.query(
      primary,
      `select rolname from pg_roles where rolname in ('floe_repair_alpha', 'floe_standby_alpha_6')`,
    ),
  ).toEqual([])
  await expect(asDba(`select pg_read_binary_file('floe_server.pem')`)).rejects.toThrow('permission denied')
  await f.must({ kind: 'delete-instance', instanceId: id, confirmName: 'alpha-6', keepFiles: false })
  await s.dismiss(primary, 'alpha-6', false)
  await admitRepair([])
  await f.query(primary, 'drop role page_repair')
})

test('a member whose agent is older keeps the role it has', async () => {
  await f.query(
    primary,
    `create role page_repair nologin; grant execute on function ${READ} to page_repair;
     create role floe_repair_alpha login; grant page_repair to floe_repair_alpha`,
  )
  await admitRepair([{ name: 'alpha' }])
  expect(await mayRead('floe_repair_alpha')).toBe(true)
  await admitRepair([])
  expect(
    await f.query(
      primary,
      `select rolname from pg_roles where rolname in ('page_repair', 'floe_repair_alpha')`,
    ),
  ).toEqual([])
})

describe('clients on other hosts', () => {
  const access = (id: string) =>
    waitUntil('how clients come in is reported', async () => (await f.observed(id))?.remoteAccess)
  const earlier = `local   all          all                 scram-sha-256
host    all          all   all           scram-sha-256
local   replication  all                 scram-sha-256
host    replication  all   all           scram-sha-256
`
  const write = (id: string, text: string) =>
    f.query(
      id,
      `copy (select ${pg.escapeLiteral(text)}) to program 'cat > pg_hba.conf.new; printf "%b" "$(cat pg_hba.conf.new)" > pg_hba.conf; rm pg_hba.conf.new'`,
    )

  test('of a new instance come in over TLS only, those on this host without', async () => {
    expect(await access(primary)).toMatchObject({ tls: true, withoutTls: false, sessionsWithoutTls: 0 })
    const text = readFileSync(`${f.dataDirectory(primary)}/pg_hba.conf`, 'utf8')
    expect(text).toMatch(/^hostssl all +all +all +scram-sha-256$/m)
    expect(text).not.toMatch(/^host +\S+ +\S+ +all /m)
    expect(await asDba('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).toEqual([{ ssl: false }])
  })

  test('of an earlier one come in over TLS only once that was asked for; a person’s lines stay', async () => {
    const id = await f.createRunning({ name: 'beta' })
    await write(id, `${earlier}local  app  all  peer\n`)
    await f.must({ kind: 'reload-instance', instanceId: id })
    await waitUntil(
      'it is reported',
      async () => (await f.observed(id))?.remoteAccess?.withoutTls === true,
      20_000,
    )
    expect(await s.must({ kind: 'require-tls', instanceId: id })).toEqual({
      changed: true,
      sessionsWithoutTls: 0,
    })
    expect(await access(id)).toMatchObject({ withoutTls: false })
    const text = readFileSync(`${f.dataDirectory(id)}/pg_hba.conf`, 'utf8')
    expect(text).toContain('local  app  all  peer')
    expect(text).toMatch(/^hostssl replication +all +all +scram-sha-256$/m)
    expect(await s.must({ kind: 'require-tls', instanceId: id })).toEqual({
      changed: false,
      sessionsWithoutTls: 0,
    })
  })

  test('who changed the lines is told which, and nothing is changed', async () => {
    const id = await f.createRunning({ name: 'gamma' })
    const text = `${earlier}host    app  all  10.0.0.0/8  md5\n`
    await write(id, text)
    const refused = await s.run({ kind: 'require-tls', instanceId: id })
    expect(refused.fault).toMatchObject({
      code: 'tls.changed_by_hand',
      detail: expect.stringMatching(/by line \d+ of pg_hba\.conf\.$/),
    })
    expect(readFileSync(`${f.dataDirectory(id)}/pg_hba.conf`, 'utf8')).toContain(text)
    await write(id, `${earlier}host nonsense\n`)
    expect((await s.run({ kind: 'require-tls', instanceId: id })).fault?.code).toBe('tls.hba_invalid')
  })
})
