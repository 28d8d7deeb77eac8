import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture, asInstanceId, type TaskRequest } from './agent-fixture'

let f: AgentFixture
let id: string
beforeAll(async () => {
  f = await AgentFixture.start()
  id = await f.createRunning()
})
afterAll(() => f.remove())

type Kind = 'create-database-role' | 'change-database-role' | 'drop-database-role'
/** What is left out is what the contract says. */
const task = (kind: Kind, role: string, more: object = {}) =>
  ({ kind, instanceId: id, role, ...more }) as unknown as TaskRequest
const done = async (kind: Kind, role: string, more: object = {}) => {
  const { state, fault } = await f.run(task(kind, role, more))
  expect([state, fault]).toEqual(['succeeded', null])
}
const refused = async (kind: Kind, role: string, more: object = {}) =>
  (await f.run(task(kind, role, more))).fault
const list = async (name?: string) =>
  (await f.read.databaseRole.list.query({ instanceId: asInstanceId(id), ...(name ? { name } : {}) })).roles
const sql = <T = Record<string, unknown>>(text: string) => f.query<T>(id, text)

async function logIn(user: string, password: string): Promise<string | null> {
  const port = (await f.observed(id))?.port
  const client = new pg.Client({ host: '127.0.0.1', port, user, database: 'postgres', password })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.end()
    return null
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}

describe('a role', () => {
  test('is created as it was asked for, logs in with its password, and is listed', async () => {
    await done('create-database-role', 'readers')
    await done('create-database-role', 'app', {
      login: true,
      createDb: true,
      connectionLimit: 5,
      validUntil: '2126-01-02T03:04:05+01:00',
      memberOf: ['readers', 'pg_read_all_data'],
      passwordVerifier: scramVerifier('first'),
    })
    expect(await list('app')).toEqual([
      {
        name: 'app',
        login: true,
        createDb: true,
        createRole: false,
        superuser: false,
        replication: false,
        bypassRls: false,
        connectionLimit: 5,
        validUntil: Date.parse('2126-01-02T02:04:05Z'),
        hasPassword: true,
        memberOf: ['pg_read_all_data', 'readers'],
        kept: null,
      },
    ])
    expect(await logIn('app', 'first')).toBeNull()
    expect((await list()).map(({ name, kept }) => [name, kept])).toEqual([
      ['app', null],
      ['floe', 'floe'],
      ['postgres', 'superuser'],
      ['readers', null],
    ])
    expect(await refused('create-database-role', 'app')).toMatchObject({
      code: 'role.name_taken',
      message: 'role "app" already exists',
    })
  })

  test('is changed in what was named, and in nothing else', async () => {
    await done('change-database-role', 'app', {
      createDb: false,
      createRole: true,
      connectionLimit: -1,
      validUntil: null,
      passwordVerifier: scramVerifier('second'),
    })
    expect(await list('app')).toMatchObject([
      {
        login: true,
        createDb: false,
        createRole: true,
        connectionLimit: -1,
        validUntil: null,
        memberOf: ['pg_read_all_data', 'readers'],
      },
    ])
    expect(await logIn('app', 'first')).toBe('28P01')
    expect(await logIn('app', 'second')).toBeNull()
    await done('change-database-role', 'app', { login: false, passwordVerifier: null })
    expect(await list('app')).toMatchObject([{ login: false, hasPassword: false }])
  })

  test('loses a membership whoever granted it', async () => {
    await sql('create role writers; create role boss; grant writers to boss with admin option')
    await sql('grant writers to app granted by boss')
    await done('change-database-role', 'app', { grant: ['writers'], revoke: ['pg_read_all_data'] })
    expect(await list('app')).toMatchObject([{ memberOf: ['readers', 'writers'] }])
    await done('change-database-role', 'app', { revoke: ['writers'] })
    expect(await list('app')).toMatchObject([{ memberOf: ['readers'] }])
    // PostgreSQL's own words: boss has granted it on
    await sql(
      'grant writers to app with admin option granted by boss; grant writers to readers granted by app',
    )
    expect(await refused('change-database-role', 'app', { revoke: ['writers'] })).toMatchObject({
      code: 'role.has_dependents',
      message: 'dependent privileges exist',
    })
    await sql('revoke writers from app granted by boss cascade')
  })

  test('with objects is not dropped: PostgreSQL says which, and the hint says what it advises', async () => {
    await sql('create table belongs (); alter table belongs owner to app')
    expect(await refused('drop-database-role', 'app')).toMatchObject({
      code: 'role.has_dependents',
      message: 'role "app" cannot be dropped because some objects depend on it',
      detail: 'owner of table public.belongs',
      hint: expect.stringContaining('REASSIGN OWNED BY "app" TO'),
    })
    await sql('drop table belongs')
    await done('drop-database-role', 'app')
    expect(await list('app')).toEqual([])
    expect(await refused('drop-database-role', 'app')).toMatchObject({ code: 'role.not_found' })
  })

  test('has the name that was asked for, whatever is in it', async () => {
    const names = [
      `a"; drop role readers; --`,
      `it's \\ "quoted"`,
      'Äpfel und Birnen',
      'SELECT',
      '$1',
      '🧊'.repeat(15),
    ]
    for (const name of names) {
      await done('create-database-role', name, {
        passwordVerifier: scramVerifier('x'),
        memberOf: ['readers'],
      })
      await done('change-database-role', name, { login: true })
      expect(await list(name)).toMatchObject([{ name, login: true, memberOf: ['readers'] }])
      expect(await logIn(name, 'x')).toBeNull()
      await done('change-database-role', 'readers', { grant: ['writers'], revoke: ['writers'] })
      await done('drop-database-role', name)
    }
    expect((await list()).map(({ name }) => name)).toEqual(['boss', 'floe', 'postgres', 'readers', 'writers'])
  })

  test('of Floe, a predefined one, and one that is a superuser or could become one is left as it is', async () => {
    await sql(`create role walker replication; create role over bypassrls; create role chief superuser;
      create role deputy in role chief; create role clerk in role deputy; create role robber;
      grant pg_execute_server_program to robber; create role floe_standby_x; create role child`)
    const before = await list()
    const code = async (kind: Kind, role: string, more: object = {}) =>
      (await refused(kind, role, more))?.code
    for (const role of ['floe', 'floe_standby_x', 'floe_repair_one_0123456789abcdef', 'page_repair'])
      for (const kind of ['create-database-role', 'change-database-role', 'drop-database-role'] as const)
        expect([kind, role, await code(kind, role, { login: false })]).toEqual([kind, role, 'role.of_floe'])
    for (const role of ['pg_monitor', 'pg_mine', 'public', 'none'])
      expect(await code('drop-database-role', role)).toBe('role.reserved')
    for (const role of ['postgres', 'walker', 'over', 'chief', 'deputy', 'clerk', 'robber']) {
      expect([
        role,
        await code('change-database-role', role, { passwordVerifier: scramVerifier('x') }),
      ]).toEqual([role, 'role.superuser'])
      expect([role, await code('drop-database-role', role)]).toEqual([role, 'role.superuser'])
      expect([role, await code('change-database-role', 'child', { grant: [role] })]).toEqual([
        role,
        'role.superuser',
      ])
      expect([role, await code('create-database-role', 'new', { memberOf: [role] })]).toEqual([
        role,
        'role.superuser',
      ])
    }
    for (const role of ['pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program'])
      expect(await code('change-database-role', 'child', { grant: [role] })).toBe('role.reserved')
    expect(await code('change-database-role', 'child', { grant: ['floe'] })).toBe('role.of_floe')
    expect(await list()).toEqual(before)
    await sql(
      `drop role clerk; drop role deputy; drop role walker, over, chief, robber, floe_standby_x, child`,
    )
  })
})

describe('a password', () => {
  test('has the verifier that PostgreSQL makes of it, in every form of Unicode', async () => {
    const passwords = [
      'plain',
      'tab\tand\u0001control',
      'na\u00efve',
      'nai\u0308ve',
      'no\u00a0break\u00adsoft',
      '\u200b',
      '\u00ad',
      '\u2168\ufb01',
      'emoji 🧊\u00a0',
      '\u05d0\u05d1',
      '\u05d0a\u05d1\u00a0',
      '\u0627\u0031',
      '\ud55c\uae00',
      'ls\u2028ps',
      '\ue000\u00a0',
      '\u0221\u00a0',
      '\uf900',
      'x'.repeat(300),
    ]
    await sql('create role speller')
    for (const password of passwords) {
      await sql(`alter role speller password ${pg.escapeLiteral(password)}`)
      const [{ rolpassword }] = (await sql(
        `select rolpassword from pg_authid where rolname = 'speller'`,
      )) as [{ rolpassword: string }]
      const salt = Buffer.from(/:([^$]+)\$/.exec(rolpassword)?.[1] as string, 'base64')
      expect([password, scramVerifier(password, salt)]).toEqual([password, rolpassword])
    }
    await done('drop-database-role', 'speller')
  })

  test('that is no verifier to PostgreSQL is refused, and nothing is changed', async () => {
    await done('create-database-role', 'keeper', { login: true, passwordVerifier: scramVerifier('kept') })
    const passwordVerifier = 'SCRAM-SHA-256$4096:c2FsdA==$c2hvcnQ=:c2hvcnQ='
    expect(
      await refused('change-database-role', 'keeper', { passwordVerifier, createDb: true }),
    ).toMatchObject({ code: 'role.verifier' })
    expect(await list('keeper')).toMatchObject([{ createDb: false }])
    expect(await logIn('keeper', 'kept')).toBeNull()
    expect(await refused('create-database-role', 'lost', { passwordVerifier })).toMatchObject({
      code: 'role.verifier',
    })
    expect(await list('lost')).toEqual([])
  })
})

describe('a superuser of the instance', () => {
  const serverLog = () => {
    const directory = join(f.installation.instancesDirectory, id, 'log')
    return readdirSync(directory)
      .map((name) => readFileSync(join(directory, name), 'utf8'))
      .join('')
  }
  /** Commits wait for a standby that does not come, until `run` has ended. */
  async function withCommitsWaiting<T>(run: (waits: () => Promise<unknown>) => Promise<T>): Promise<T> {
    await sql(`alter system set synchronous_standby_names = 'nobody'`)
    await sql('select pg_reload_conf()')
    const waits = () =>
      waitUntil('a commit waits', async () => {
        const rows = await sql(
          `select usename, query, state from pg_stat_activity where pid in
             (select pid from pg_locks where relation = 'pg_catalog.pg_authid'::regclass and mode = 'ShareRowExclusiveLock')`,
        )
        const commits = await sql(`select from pg_stat_get_activity(null) where wait_event = 'SyncRep'`)
        // what has begun to wait since is seen with its lock the next time
        return commits.length > 0 && rows.length > 0 ? rows : null
      })
    try {
      return await run(waits)
    } finally {
      await sql('alter system reset synchronous_standby_names')
      await sql('select pg_reload_conf()')
    }
  }

  test('reads no verifier in the log or in pg_stat_activity, and has Floe act as nobody else', async () => {
    await sql(`create role mallory login; create schema evil; grant all on schema evil to public`)
    await sql(`create function evil.starts_with(text, text) returns boolean language sql as 'select true'`)
    await sql('create table evil.pg_authid as select * from pg_catalog.pg_authid with no data')
    await sql(`create function evil.at_login() returns event_trigger language plpgsql as $$
      begin
        perform set_config('search_path', 'evil, pg_catalog', false);
        perform set_config('log_statement', 'all', false);
        perform set_config('log_min_messages', 'debug1', false);
        perform set_config('track_activities', 'on', false);
        if session_user = 'floe' then perform set_config('role', 'mallory', false); end if;
      end $$`)
    const settings = [
      `role = 'mallory'`,
      `session_authorization = 'mallory'`,
      `search_path = 'evil', 'pg_catalog'`,
      `log_statement = 'all'`,
      'log_min_duration_statement = 0',
      `log_min_messages = 'debug1'`,
      'debug_print_parse = on',
      'track_activities = on',
      'default_transaction_read_only = on',
      'standard_conforming_strings = off',
      `password_encryption = 'md5'`,
    ]
    for (const setting of settings) await sql(`alter role floe set ${setting}`)
    await sql('create event trigger at_login on login execute function evil.at_login()')
    await sql('create event trigger at_command on ddl_command_start execute function evil.at_login()')
    const verifier = scramVerifier('never seen')
    try {
      await withCommitsWaiting(async (waits) => {
        const key = await f.begin(
          task('create-database-role', 'seen', { login: true, passwordVerifier: verifier }),
        )
        expect(await waits()).toEqual([{ usename: 'floe', query: '', state: 'disabled' }])
        await sql('alter system reset synchronous_standby_names')
        await sql('select pg_reload_conf()')
        expect(await f.ended(key)).toMatchObject({ state: 'succeeded' })
      })
      expect(await list('seen')).toMatchObject([{ name: 'seen', hasPassword: true }])
      expect(await list('pg_monitor')).toMatchObject([{ name: 'pg_monitor' }])
      expect((await list()).map(({ name }) => name)).toContain('mallory')
      await done('change-database-role', 'seen', { passwordVerifier: verifier })
      // an error is said to who asked, and to nobody else
      expect(
        await refused('create-database-role', 'seen', { passwordVerifier: scramVerifier('x') }),
      ).toMatchObject({ code: 'role.name_taken' })
    } finally {
      await sql('drop event trigger at_login; drop event trigger at_command; alter role floe reset all')
    }
    expect(await logIn('seen', 'never seen')).toBeNull()
    // what does not look for it would prove nothing; the logger process writes in the order in which it was told, not at once
    await sql(`select 'said by a statement that fails' from nowhere`).catch(() => {})
    await waitUntil('the log is written', async () => serverLog().includes('said by a statement that fails'))
    expect(serverLog()).not.toMatch(/SCRAM-SHA-256\$4096/)
    await done('drop-database-role', 'seen')
  })

  test('who takes Floe’s rights away is told so', async () => {
    await sql('alter role floe nosuperuser')
    try {
      expect((await refused('create-database-role', 'refused'))?.code).toMatch(
        /^(role\.refused|instance\.no_connection)$/,
      )
    } finally {
      await sql('alter role floe superuser')
    }
    expect(await list('refused')).toEqual([])
  })

  describe('the agent killed while a commit waits', () => {
    /** The commit is on the primary; nobody was told. */
    async function killedAtCommit(kind: Kind, role: string, more: object = {}) {
      const key = f.newKey()
      await withCommitsWaiting(async (waits) => {
        await f.begin(task(kind, role, more), key)
        await waits()
        await f.agent.end('SIGKILL')
        const client = await f.queryPort(id, 'alter system reset synchronous_standby_names').catch(String)
        expect(client).toEqual([])
        await f.queryPort(id, 'select pg_reload_conf()')
        await f.agent.start()
      })
      return f.ended(key)
    }

    test('creates, changes and drops once', async () => {
      expect(await killedAtCommit('create-database-role', 'once', { login: true })).toMatchObject({
        state: 'succeeded',
      })
      expect(await list('once')).toMatchObject([{ login: true }])
      expect(await killedAtCommit('change-database-role', 'once', { createDb: true })).toMatchObject({
        state: 'succeeded',
      })
      expect(await list('once')).toMatchObject([{ createDb: true }])
      expect(await killedAtCommit('drop-database-role', 'once')).toMatchObject({ state: 'succeeded' })
      expect(await list('once')).toEqual([])
    })

    test('takes nobody else’s role of the same name for its own', async () => {
      await sql('create role theirs')
      expect(await refused('create-database-role', 'theirs')).toMatchObject({ code: 'role.name_taken' })
      await sql('drop role theirs')
    })
  })
})
