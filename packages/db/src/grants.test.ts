import { randomUUID } from 'node:crypto'
import { controlDatabaseRoles } from '@floe/domain'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
// @ts-expect-error a plain script, also run by the launcher
import { applyGrants as apply } from '../tools/apply-grants.mjs'
// @ts-expect-error a plain module of the launcher's tools
import * as grants from '../tools/grants.mjs'
// @ts-expect-error a plain script, also run by the launcher
import { deployMigrations } from '../tools/migrate-deploy.mjs'
import { giveUpOwnStart } from './queries/cluster'
import {
  createTestDatabase,
  insertTestInstance,
  startTestEngine,
  type TestDatabase,
} from './testing/control-database'

type Role = 'web' | 'controller'
type Grant = Partial<Record<'select' | 'insert' | 'update' | 'delete', true | string[]>>
const tables = grants.tables as Record<string, Partial<Record<Role, Grant>>>
const functions = grants.functions as Record<string, Role[]>
const sequences = grants.sequences as Record<string, Role[]>
const roleNames = grants.roleNames as Record<Role, string>
const applyGrants = apply as (o: { connectionString: string; owner?: string }) => Promise<void>

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

/** Columns of every table of ours but partitions, as grants.mjs names tables. */
async function columnsOfTables(): Promise<Record<string, string[]>> {
  const { rows } = await db.pool.query<{ name: string; columns: string[] }>(
    `SELECT CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname AS name,
            (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
              WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        AND NOT c.relispartition ORDER BY 1`,
  )
  return Object.fromEntries(rows.map((r) => [r.name, r.columns]))
}

/** Who has which privilege on which column, `who table.column PRIVILEGE`; those of the owner left out. */
async function grantedPrivileges(): Promise<string[]> {
  const { rows } = await db.pool.query<{ granted: string }>(
    `WITH t AS (
       SELECT c.oid, c.relacl, c.relowner,
              CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname AS name
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')),
     granted AS (
       SELECT t.name, g.grantee, g.privilege_type, a.attname, t.relowner
         FROM t, aclexplode(t.relacl) g, pg_attribute a
        WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
       UNION
       SELECT t.name, g.grantee, g.privilege_type, a.attname, t.relowner
         FROM t JOIN pg_attribute a ON a.attrelid = t.oid, aclexplode(a.attacl) g)
     SELECT DISTINCT format('%s %s.%s %s', coalesce(r.rolname, 'PUBLIC'), name, attname, privilege_type) AS granted
       FROM granted LEFT JOIN pg_roles r ON r.oid = grantee WHERE grantee <> relowner ORDER BY 1`,
  )
  return rows.map((r) => r.granted)
}

/** The same as the table in grants.mjs says it. DELETE is of rows, and stands at every column here. */
function namedPrivileges(columns: Record<string, string[]>): string[] {
  return Object.entries(tables)
    .flatMap(([table, byRole]) =>
      Object.entries(byRole).flatMap(([role, grant]) =>
        Object.entries(grant).flatMap(([privilege, of]) =>
          (of === true ? (columns[table] ?? []) : of).map(
            (column) => `${roleNames[role as Role]} ${table}.${column} ${privilege.toUpperCase()}`,
          ),
        ),
      ),
    )
    .sort()
}

test('the roles are those that web and controller connect as', () => {
  expect(roleNames).toEqual(controlDatabaseRoles)
})

test('every table is named, and every table and column that is named exists', async () => {
  const columns = await columnsOfTables()
  expect(Object.keys(tables).sort()).toEqual(Object.keys(columns).sort())
  for (const [table, byRole] of Object.entries(tables))
    for (const of of Object.values(byRole).flatMap((grant) => Object.values(grant)))
      if (of !== true) expect(columns[table]).toEqual(expect.arrayContaining(of))
})

test('after each run the privileges are exactly those that are named, whatever was granted before', async () => {
  await db.pool.query('GRANT ALL ON audit_event, account TO PUBLIC')
  await db.pool.query(`GRANT UPDATE (password) ON account TO ${roleNames.controller}`)
  await db.pool.query(`GRANT TRUNCATE, TRIGGER ON audit_event TO ${roleNames.web}`)
  await db.pool.query(`GRANT CREATE ON SCHEMA public, telemetry TO ${roleNames.web}, PUBLIC`)
  await db.pool.query('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public, telemetry TO PUBLIC')
  await applyGrants(db)
  const named = namedPrivileges(await columnsOfTables())
  expect(named.length).toBeGreaterThan(300)
  expect(new Set(await grantedPrivileges())).toEqual(new Set(named))
  // again, and by several at once
  await Promise.all([1, 2, 3].map(() => applyGrants(db)))
  expect(new Set(await grantedPrivileges())).toEqual(new Set(named))
})

test('functions that act as the owner have a fixed search path, and only who is named may call one', async () => {
  const { rows } = await db.pool.query<{
    signature: string
    definer: boolean
    pinned: boolean
    trigger: boolean
    callers: string[]
  }>(
    `SELECT p.oid::regprocedure::text AS signature, p.prosecdef AS definer,
            coalesce(p.proconfig::text LIKE '%search_path=pg_catalog%pg_temp%', false) AS pinned,
            p.prorettype = 'trigger'::regtype AS trigger,
            ARRAY(SELECT coalesce(r.rolname, 'PUBLIC')::text
                    FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) g
                    LEFT JOIN pg_roles r ON r.oid = g.grantee
                   WHERE g.grantee <> p.proowner ORDER BY r.rolname) AS callers
       FROM pg_proc p WHERE p.pronamespace IN ('public'::regnamespace, 'telemetry'::regnamespace)`,
  )
  expect(rows.filter((f) => f.definer && !f.pinned)).toEqual([])
  const expected = Object.fromEntries(
    Object.entries(functions).map(([signature, roles]) => [
      signature.replaceAll('timestamptz', 'timestamp with time zone'),
      roles.map((role) => roleNames[role]).sort(),
    ]),
  )
  expect(
    Object.fromEntries(rows.filter((f) => f.callers.length > 0).map((f) => [f.signature, f.callers])),
  ).toEqual(expected)
  const callable = rows.filter((f) => f.definer && !f.trigger).map((f) => f.signature)
  expect(callable.every((signature) => signature in expected)).toBe(true)
})

test('a sequence may be used by who inserts into its column', async () => {
  const { rows } = await db.pool.query<{ name: string; users: string[] }>(
    `SELECT c.relname AS name, ARRAY(SELECT r.rolname::text FROM aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
                                      WHERE g.grantee <> c.relowner AND g.privilege_type = 'USAGE') AS users
       FROM pg_class c WHERE c.relkind = 'S' AND c.relnamespace = 'public'::regnamespace`,
  )
  expect(Object.fromEntries(rows.map((r) => [r.name, r.users]))).toEqual(
    Object.fromEntries(
      Object.entries(sequences).map(([name, roles]) => [name, roles.map((r) => roleNames[r])]),
    ),
  )
})

describe('walls', () => {
  let instanceId: string
  let hostId: string
  beforeAll(async () => {
    const made = await insertTestInstance(db)
    instanceId = made.instanceId
    hostId = made.hostId
    await db.pool.query(
      `INSERT INTO audit_event (actor, "actorName", action, outcome) VALUES ('u', 'Ada', 'instance.stop', 'allowed')`,
    )
  })
  const denied = async (role: Role, statement: string) => {
    const error = await db.as[role].pool.query(statement).then(
      () => ({ code: 'it was allowed' }),
      (e: { code: string }) => e,
    )
    expect({ statement, code: error.code }).toEqual({ statement, code: '42501' })
  }

  test.each(['web', 'controller'] as const)(
    '%s can insert and read audit rows, nothing else',
    async (role) => {
      await db.as[role].pool.query(
        `INSERT INTO audit_event (actor, "actorName", action, outcome) VALUES ('u', 'Ada', 'x.y', 'denied')`,
      )
      const { rows } = await db.as[role].pool.query('SELECT count(*)::int AS n FROM audit_event')
      expect(rows[0].n).toBeGreaterThan(0)
      for (const statement of [
        `UPDATE audit_event SET "actorName" = 'somebody else'`,
        'DELETE FROM audit_event',
        'TRUNCATE audit_event',
        'SELECT * FROM audit_event FOR UPDATE',
        `INSERT INTO audit_event (id, actor, "actorName", action, outcome) VALUES (99, 'u', 'Ada', 'x.y', 'denied')`,
        `INSERT INTO audit_event (at, actor, "actorName", action, outcome) VALUES (now(), 'u', 'Ada', 'x.y', 'denied')`,
        `INSERT INTO audit_event (hash, actor, "actorName", action, outcome) VALUES ('\\x00', 'u', 'Ada', 'x.y', 'denied')`,
        'ALTER TABLE audit_event DISABLE TRIGGER audit_event_chained',
        'DROP TRIGGER audit_event_chained ON audit_event',
        `CREATE TRIGGER own BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION notify_id('operation', 'id')`,
        'DROP FUNCTION audit_event_chained() CASCADE',
        `UPDATE audit_chain SET "headHash" = '\\x00'`,
        'DELETE FROM audit_chain',
        `SET session_replication_role = 'replica'`,
      ])
        await denied(role, statement)
    },
  )

  test.each(['web', 'controller'] as const)(
    '%s can make no object and become no other role',
    async (role) => {
      for (const statement of [
        'CREATE TABLE own (n int)',
        'CREATE TABLE telemetry.own (n int)',
        'CREATE TEMPORARY TABLE own (n int)',
        'CREATE SCHEMA own',
        'CREATE FUNCTION own() RETURNS int LANGUAGE sql RETURN 1',
        'CREATE ROLE own',
        `SET ROLE ${new URL(db.connectionString).username}`,
        `SET ROLE ${role === 'web' ? roleNames.controller : roleNames.web}`,
        `COPY (SELECT 1) TO PROGRAM 'true'`,
        `SELECT pg_read_file('pg_hba.conf')`,
        `ALTER TABLE host OWNER TO ${roleNames[role]}`,
        'SELECT * FROM _prisma_migrations',
        'ALTER TABLE host ADD COLUMN own int',
      ])
        await denied(role, statement)
    },
  )

  test('web cannot write what was observed', async () => {
    for (const statement of [
      `UPDATE instance SET state = 'running'`,
      `UPDATE instance SET observed = '{}'`,
      `UPDATE instance SET "memberRole" = 'primary'`,
      `UPDATE host SET facts = '{}'`,
      `UPDATE host SET "agentUrl" = 'https://127.0.0.1:1'`,
      `INSERT INTO host (id, name, "agentUrl") VALUES (gen_random_uuid(), 'h', 'u')`,
      `UPDATE cluster SET "primaryInstanceId" = gen_random_uuid()`,
      `UPDATE operation SET state = 'succeeded', "endedAt" = now()`,
      `UPDATE operation SET input = '{}'`,
      `UPDATE operation SET "leaseOwner" = 'web'`,
      `INSERT INTO operation (id, kind, input, actor, "actorName", state) VALUES (gen_random_uuid(), 'x', '{}', 'u', 'A', 'running')`,
      `INSERT INTO operation_step ("operationId", position, name, title) VALUES (gen_random_uuid(), 0, 'x', 'X')`,
      `INSERT INTO operation_log ("operationId", text) VALUES (gen_random_uuid(), 'x')`,
      `INSERT INTO incident (id, key, severity, title) VALUES (gen_random_uuid(), 'k', 'warning', 't')`,
      `UPDATE incident SET "closedAt" = now()`,
      `INSERT INTO telemetry.sample VALUES ('${instanceId}', 1, now(), 1000, '{}')`,
      `INSERT INTO telemetry.sample_10s VALUES ('${instanceId}', now(), 1, '{}', '{}')`,
      `INSERT INTO webhook_delivery ("webhookId", event, body) VALUES (gen_random_uuid(), 'incident.opened', '{}')`,
      `UPDATE host_enrolment SET certificate = 'x'`,
      `INSERT INTO host_certificate VALUES ('f', '${hostId}', now(), now())`,
      `INSERT INTO setting_change ("instanceId") VALUES ('${instanceId}')`,
      `SELECT * FROM lease`,
      `UPDATE lease SET owner = 'web'`,
      `SELECT prune_audit_events(1)`,
      `SELECT prune_operations(1)`,
      `SELECT telemetry.drop_partition('sample')`,
      'DELETE FROM operation',
      'DELETE FROM instance',
      'DELETE FROM incident',
      `INSERT INTO api_token (id, name, "tokenHash") VALUES (gen_random_uuid(), 'mine', 'h')`,
      `UPDATE api_token SET "tokenHash" = 'h'`,
      `INSERT INTO setup_link (id, "tokenHash", "expiresAt") VALUES (gen_random_uuid(), 'h', now())`,
    ])
      await denied('web', statement)
  })

  test('the controller cannot read or write users, sessions and tokens, nor what web is asked', async () => {
    for (const table of [
      '"user"',
      'session',
      'account',
      'verification',
      'organization',
      'member',
      'invitation',
      'api_token',
      'setup_link',
    ])
      for (const statement of [
        `SELECT * FROM ${table}`,
        `SELECT count(*) FROM ${table}`,
        `INSERT INTO ${table} DEFAULT VALUES`,
        `DELETE FROM ${table}`,
        `TRUNCATE ${table} CASCADE`,
      ])
        await denied('controller', statement)
    for (const statement of [
      `UPDATE session SET "expiresAt" = now()`,
      `SELECT "tokenHash" FROM host_enrolment`,
      `UPDATE instance SET intent = 'deleted'`,
      `UPDATE instance SET name = 'x'`,
      `INSERT INTO instance (id, name, "hostId", intent) VALUES (gen_random_uuid(), 'x', '${hostId}', 'running')`,
      `UPDATE incident SET "acknowledgedBy" = 'x'`,
      // what a person decided after a restore
      `UPDATE restored_record SET "acceptedAs" = 'recorded'`,
      `UPDATE restored_record SET "acceptedByName" = NULL`,
      `INSERT INTO webhook (id, url, actor, "actorName") VALUES (gen_random_uuid(), 'u', 'a', 'a')`,
      `INSERT INTO webhook_delivery ("webhookId", event, body) VALUES (gen_random_uuid(), 'incident.opened', '{}')`,
      `UPDATE record_retention SET "keepSeconds" = 1`,
      `UPDATE telemetry.retention SET keep_seconds = 3600`,
      `UPDATE operation SET "cancelAskedAt" = now()`,
      `UPDATE operation SET actor = 'x'`,
      'DELETE FROM operation',
      'DELETE FROM telemetry.sample',
      'DROP TABLE telemetry.sample',
      'DELETE FROM lease',
    ])
      await denied('controller', statement)
  })

  test('the controller gives up starts that it has ordered by itself, and nothing of anybody else', async () => {
    const given = async (actor: string, kind: string) => {
      const id = randomUUID()
      await db.pool.query(
        `INSERT INTO operation (id, kind, input, actor, "actorName", state) VALUES ($1, $2, '{}', $3, 'A', 'running')`,
        [id, kind, actor],
      )
      const asked = await giveUpOwnStart(db.as.controller.pool, id)
      const { rows } = await db.pool.query('SELECT state FROM operation WHERE id = $1', [id])
      return [asked, rows[0]?.state]
    }
    expect(await given('controller', 'start-instance')).toEqual([true, 'cancelling'])
    expect(await given('controller', 'failover-cluster')).toEqual([false, 'running'])
    expect(await given('u', 'start-instance')).toEqual([false, 'running'])
    await expect(giveUpOwnStart(db.as.web.pool, randomUUID())).rejects.toMatchObject({ code: '42501' })
  })

  test('nobody else comes in', async () => {
    const admin = new pg.Client({ connectionString: inject('engineConnectionString') })
    await admin.connect()
    const stranger = `stranger_${randomUUID().slice(0, 8)}`
    await admin.query(`CREATE ROLE ${stranger} LOGIN`)
    try {
      const url = new URL(db.connectionString)
      url.username = stranger
      const client = new pg.Client({ connectionString: url.toString() })
      await expect(client.connect()).rejects.toMatchObject({ code: '42501' })
    } finally {
      await admin.query(`DROP ROLE ${stranger}`)
      await admin.end()
    }
  })
})

describe('as a superuser over the socket, for the owner', () => {
  let engine: Awaited<ReturnType<typeof startTestEngine>>
  let url: string
  const asSuperuser = async (statement: string) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      return (await client.query(statement)).rows
    } finally {
      await client.end()
    }
  }
  beforeAll(async () => {
    engine = await startTestEngine()
    const { port } = new URL(engine.connectionString)
    url = engine.connectionString
    const [{ unix_socket_directories: directory }] = (await asSuperuser('SHOW unix_socket_directories')) as [
      { unix_socket_directories: string },
    ]
    await asSuperuser('CREATE ROLE console NOLOGIN')
    await asSuperuser('CREATE DATABASE console OWNER console')
    // as libpq writes it: no host before the path
    url = `postgresql://postgres@/console?host=${encodeURIComponent(directory)}&port=${port}`
  })
  afterAll(() => engine.remove())

  test('what migrations make belongs to the owner, and grants want the roles that the launcher makes', async () => {
    const { applied } = (await deployMigrations({ connectionString: url, owner: 'console' })) as {
      applied: string[]
    }
    expect(applied.length).toBeGreaterThan(10)
    const owners = await asSuperuser(
      `SELECT DISTINCT pg_get_userbyid(relowner) AS owner FROM pg_class
        WHERE relnamespace IN ('public'::regnamespace, 'telemetry'::regnamespace)`,
    )
    expect(owners).toEqual([{ owner: 'console' }])
    await expect(applyGrants({ connectionString: url, owner: 'console' })).rejects.toThrow(
      'role "floe_web" does not exist',
    )
    await asSuperuser('CREATE ROLE floe_web LOGIN')
    await asSuperuser('CREATE ROLE floe_controller LOGIN')
    await applyGrants({ connectionString: url, owner: 'console' })
  })

  test.each([
    ['ALTER ROLE floe_web CREATEROLE', 'has an attribute', 'ALTER ROLE floe_web NOCREATEROLE'],
    ['GRANT pg_read_all_data TO floe_web', 'is a member', 'REVOKE pg_read_all_data FROM floe_web'],
    ['GRANT console TO floe_controller', 'is a member', 'REVOKE console FROM floe_controller'],
    ['GRANT floe_web TO floe_controller', 'another role', 'REVOKE floe_web FROM floe_controller'],
    [
      'CREATE SCHEMA own AUTHORIZATION floe_controller',
      'owns objects',
      'DROP SCHEMA own; ALTER ROLE floe_controller LOGIN',
    ],
  ])('%s: a role with other powers is refused', async (before, why, after) => {
    await asSuperuser(before)
    await expect(applyGrants({ connectionString: url, owner: 'console' })).rejects.toThrow(why)
    await asSuperuser(after)
    await applyGrants({ connectionString: url, owner: 'console' })
  })
})
