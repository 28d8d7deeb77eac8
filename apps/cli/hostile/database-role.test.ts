import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { until } from '../launcher/private-home'
import {
  answerOf,
  attempt,
  type Created,
  call,
  controlSql,
  filesBelow,
  gotIn,
  home,
  it,
  must,
  sql,
  uidOf,
  watcher,
} from './victim'

// Roles are the whole instance's: its superuser watches and steers what Floe does there, and an operator wants to become one.

const operator = { token: it.people.operator.token }
type Operation = {
  state: string
  endedAt: number | null
  fault: { code: string } | null
  input: Record<string, unknown>
}
type Answered = { operation: Operation }

/** Orders something as the operator; how it ended, or the status and words of the refusal. */
async function ordered(verb: 'create' | 'change' | 'drop', input: object): Promise<string> {
  const asked = await call(operator, 'mutation', `role.${verb}`, { instanceId: it.beta.instanceId, ...input })
  if (asked.status !== 200) return `${asked.status} ${asked.text}`
  const { operationId } = answerOf<{ operationId: string }>(asked)
  let seen: Operation | undefined
  await until(
    `role.${verb} ends`,
    async () => {
      const answer = await call(operator, 'query', 'operation.show', { operationId, afterLogId: 0 })
      seen = answerOf<Answered>(answer).operation
      return seen.endedAt !== null
    },
    60_000,
  )
  return `${seen?.state} ${seen?.fault?.code ?? ''}`.trim()
}

const rolesOf = (instance: Created) =>
  must(
    sql(
      instance,
      `select string_agg(concat_ws(' ', quote_ident(rolname), rolsuper, rolreplication, rolbypassrls, rolcanlogin, rolpassword),
                '; ' order by rolname) from pg_catalog.pg_authid where rolname !~ '^pg_'`,
    ),
  )
/** Of a password that nobody knows: what it would take to come in with one’s own. */
const VERIFIER = `SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$${'A'.repeat(43)}=:${'B'.repeat(43)}=`

describe('an operator asks for roles', () => {
  attempt('neighbour of 17', 'no name, member or time becomes SQL of its own', async () => {
    const before = await rolesOf(it.beta)
    const names = [
      `x" superuser; --`,
      `x"; alter role postgres password 'mine'; --`,
      `'; drop role floe; --`,
      `\\"x`,
      'x SUPERUSER',
    ]
    for (const role of names) {
      expect([role, await ordered('create', { role })]).toEqual([role, 'succeeded'])
      const literal = `'${role.replaceAll("'", "''")}'`
      const found = `select rolsuper, rolcanlogin from pg_authid where rolname = ${literal}`
      expect([role, await must(sql(it.beta, `set standard_conforming_strings = on; ${found}`))]).toEqual([
        role,
        'f|f',
      ])
      await ordered('change', { role, grant: [`pg_monitor", "pg_read_server_files`] })
      await ordered('change', { role, revoke: [`pg_monitor" FROM "postgres`] })
      expect([role, await ordered('drop', { role, confirmRole: role })]).toEqual([role, 'succeeded'])
    }
    for (const input of [
      { role: 'x', validUntil: `infinity' SUPERUSER --` },
      { role: 'x', connectionLimit: '1 SUPERUSER' },
      { role: 'x', passwordVerifier: `${VERIFIER}' SUPERUSER --` },
      { role: 'x', login: 'SUPERUSER' },
      { role: 'x\nsuperuser' },
      { role: 'x'.repeat(64) },
      { role: 'x', superuser: true, replication: true, bypassRls: true },
    ]) {
      const said = await ordered('create', input)
      if (said === 'succeeded') await ordered('drop', { role: 'x', confirmRole: 'x' })
      else expect(said).toMatch(/^400 /)
    }
    const after = await rolesOf(it.beta)
    gotIn(after !== before, `${before} became ${after}`)
  })

  attempt(
    'neighbour of 17',
    'nobody becomes a superuser, and no role of Floe’s is changed or dropped',
    async () => {
      await must(
        sql(
          it.beta,
          `create role chief superuser; create role deputy in role chief; create role carrier replication;
           create role mine`,
        ),
      )
      try {
        const before = await rolesOf(it.beta)
        const theirs = ['floe', 'floe_standby_beta', 'floe_repair_beta_0123456789abcdef', 'page_repair']
        const mighty = ['postgres', 'chief', 'deputy', 'carrier']
        for (const role of [...theirs, ...mighty, 'pg_monitor', 'pg_execute_server_program']) {
          for (const [verb, input] of [
            ['change', { role, login: true, passwordVerifier: VERIFIER }],
            ['change', { role, passwordVerifier: null }],
            ['drop', { role, confirmRole: role }],
          ] as const) {
            const said = await ordered(verb, input)
            gotIn(said === 'succeeded', `${verb} of ${role}`)
            expect(said).toMatch(/role\.(of_floe|reserved|superuser)/)
          }
          if (role === 'pg_monitor') continue
          for (const said of [
            await ordered('change', { role: 'mine', grant: [role] }),
            await ordered('create', { role: 'new', memberOf: [role] }),
          ])
            gotIn(said === 'succeeded', `${role} was granted`)
        }
        const after = await rolesOf(it.beta)
        gotIn(after !== before, `${before} became ${after}`)
        // else a refusal would be no evidence
        expect(await ordered('change', { role: 'mine', login: true })).toBe('succeeded')
      } finally {
        await sql(it.beta, 'drop role mine; drop role deputy; drop role chief; drop role carrier')
      }
    },
  )

  attempt('neighbour of 17', 'a verifier is shown to nobody, and is in no audit row', async () => {
    expect(await ordered('create', { role: 'shown', login: true, passwordVerifier: VERIFIER })).toBe(
      'succeeded',
    )
    try {
      for (const role of ['viewer', 'operator', 'admin', 'owner'] as const) {
        const { token } = it.people[role]
        for (const [path, input] of [
          ['operation.list', {}],
          ['role.list', { instanceId: it.beta.instanceId }],
          ['audit.list', {}],
        ] as const) {
          const { status, text } = await call({ token }, 'query', path, input)
          gotIn(text.includes('SCRAM-SHA-256'), `${role} reads a verifier in ${path}`)
          if (role === 'owner') expect([path, status]).toEqual([path, 200])
        }
        const list = answerOf<{ operations: { operationId: string; kind: string }[] }>(
          await call({ token }, 'query', 'operation.list', {}),
        )
        const made = list.operations.find((o) => o.kind === 'create-database-role')
        const { text } = await call({ token }, 'query', 'operation.show', {
          operationId: made?.operationId,
          afterLogId: 0,
        })
        expect(text).toContain('shown')
        gotIn(text.includes('SCRAM-SHA-256'), `${role} reads a verifier in operation.show`)
      }
      const rows = await controlSql(`select count(*) from audit_event a where a::text like '%SCRAM-SHA-256%'`)
      gotIn(rows !== '0', `${rows} audit rows hold a verifier`)
    } finally {
      await ordered('drop', { role: 'shown', confirmRole: 'shown' })
    }
  })
})

describe('the superuser of an instance watches a role that Floe creates', () => {
  const password = `pässword-${randomBytes(12).toString('hex')}`
  /** What it has set for Floe's own sessions, to see what they do or to have them do it as somebody else. */
  const traps = [
    `create role mallory; create schema trap; grant all on schema trap to public;
     create table trap.pg_authid as select * from pg_catalog.pg_authid with no data;
     create function trap.at_login() returns event_trigger language plpgsql as $$ begin
       perform set_config('search_path', 'trap, pg_catalog', false);
       perform set_config('log_statement', 'all', false);
       perform set_config('track_activities', 'on', false);
       if session_user = 'floe' then perform set_config('role', 'mallory', false); end if;
     end $$`,
    `alter role floe set role = 'mallory'`,
    `alter role floe set search_path = 'trap', 'pg_catalog'`,
    `alter role floe set log_statement = 'all'`,
    'alter role floe set log_min_duration_statement = 0',
    'alter role floe set default_transaction_read_only = on',
    'create event trigger at_login on login execute function trap.at_login()',
    'create event trigger at_command on ddl_command_start execute function trap.at_login()',
  ]
  afterAll(async () => {
    await sql(it.alpha, 'drop event trigger if exists at_login; drop event trigger if exists at_command')
    await sql(it.alpha, 'alter role floe reset all; drop schema if exists trap cascade')
    await sql(it.alpha, 'drop role if exists mallory; drop role if exists watched')
  })

  attempt('neighbour of 1', 'the password is in no log, row or list of processes', async () => {
    for (const trap of traps) await must(sql(it.alpha, trap))
    // the list of processes, as anybody sees it
    const list = await watcher(
      uidOf(it.alpha),
      `
import glob
print("ready")
seen = set()
while True:
    for p in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
        try:
            text = open(p, "rb").read()
        except OSError:
            continue
        if (b"role" in text and b"watched" in text) or b"ssword-" in text:
            if text not in seen:
                seen.add(text)
                print(text)
`,
    )
    let listed: string
    try {
      const made = await home.run(['role', 'create', 'alpha', 'watched', '--login', '--password-file', '-'], {
        input: `${password}\n`,
      })
      expect([made.status, made.stderr]).toEqual([0, expect.anything()])
      const again = await home.run(['role', 'change', 'alpha', 'watched', '--password-file', '-'], {
        input: `${password}\n`,
      })
      expect([again.status, again.stderr]).toEqual([0, expect.anything()])
    } finally {
      listed = await list.end()
    }
    // it did see the command
    expect(listed).toContain('password-file')
    gotIn(listed.includes(password.slice(9)), 'the password is in the list of processes')
    const serverLog = filesBelow(join(it.alpha.directory, 'log')).map((path) => readFileSync(path, 'utf8'))
    const floes = [
      ...filesBelow(join(it.homeDirectory, 'log')),
      ...filesBelow(join(it.homeDirectory, 'agent')),
    ].map((path) => readFileSync(path, 'latin1'))
    gotIn(
      serverLog.some((text) => text.includes('SCRAM-SHA-256$')),
      'the server log holds the verifier',
    )
    const bytes = Buffer.from(password).toString('latin1')
    gotIn(
      [...serverLog, ...floes].some((text) => text.includes(password) || text.includes(bytes)),
      'a file of Floe or a log of the server holds the password',
    )
    for (const table of ['operation', 'operation_step', 'operation_log', 'audit_event']) {
      const there = await controlSql(`select to_regclass('${table}') is not null`)
      if (there !== 't') continue
      const rows = await controlSql(`select count(*) from ${table} r where r::text like '%${password}%'`)
      gotIn(rows !== '0', `${table} holds the password`)
    }
    const log = await controlSql(
      `select count(*) from operation where input::text like '%watched%' and input::text like '%SCRAM%'`,
    )
    // the verifier is there, so the question finds what is stored
    expect(Number(log)).toBeGreaterThan(0)
  })

  attempt(
    'neighbour of 8',
    'Floe acts as itself, on the real catalog, and the role is what was asked',
    async () => {
      const made = await must(
        sql(
          it.alpha,
          `select concat_ws(' ', rolsuper, rolcanlogin, rolreplication) from pg_catalog.pg_authid where rolname = 'watched'`,
        ),
      )
      gotIn(made !== 'f t f', `the role is ${made}`)
      const listed = await home.json<{ roles: { name: string }[] }>('role', 'list', 'alpha')
      expect(listed.roles.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['floe', 'mallory', 'watched']),
      )
      await must(sql(it.alpha, 'drop event trigger at_login; drop event trigger at_command'))
      const url = new URL(it.alpha.connectionString)
      url.username = 'watched'
      url.password = password
      const psql = spawnSync(
        join(it.enginePrefix, 'bin/psql'),
        ['-XAtqw', '-c', 'select 1', url.toString()],
        {
          encoding: 'utf8',
        },
      )
      expect([psql.stdout.trim(), psql.stderr]).toEqual(['1', ''])
      // who is fooled by names on a terminal
      await must(sql(it.alpha, `create role "\u001b[2Jhidden"`))
      const shown = await home.run(['role', 'list', 'alpha'])
      await must(sql(it.alpha, `drop role "\u001b[2Jhidden"`))
      gotIn(shown.stdout.includes('\u001b'), 'a name moves the cursor of a terminal')
      expect(shown.stdout).toContain('hidden')
    },
  )
})
