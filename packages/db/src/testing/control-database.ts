import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
// @ts-expect-error a plain script, also run by the launcher
import { applyGrants, grantStatements } from '../../tools/apply-grants.mjs'
// @ts-expect-error a plain module of the launcher's tools
import { roleNames as names } from '../../tools/grants.mjs'
// @ts-expect-error a plain script, also run by the launcher
import { deployMigrations } from '../../tools/migrate-deploy.mjs'
import { createDatabase, type Database, inTransaction } from '../database'

const run = promisify(execFile)
const roleNames = names as { web: string; controller: string }

/** Prefix of the engine that tests run against; throws where none is named: a suite must not pass by not running. */
export function testEnginePrefix(): string {
  const prefix = process.env.FLOE_TEST_ENGINE_PREFIX
  if (!prefix)
    throw new Error(
      'FLOE_TEST_ENGINE_PREFIX is not set; "./floe test" sets it to the prefix of a built engine',
    )
  return prefix
}

/** Engines refuse to run as root; as root they run as the user `floe`, which is made when missing. */
function engineUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) =>
    Number(execFileSync('id', [flag, 'floe'], { stdio: ['ignore', 'pipe', 'ignore'] }))
  try {
    return { uid: id('-u'), gid: id('-g') }
  } catch {
    execFileSync('useradd', ['-r', '-m', 'floe'])
    return { uid: id('-u'), gid: id('-g') }
  }
}

/** A port nobody listens on, below those the kernel gives to clients: it must still be free when the engine starts again. */
async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = 12_000 + Math.floor(Math.random() * 19_000)
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer()
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
    })
    if (free) return port
  }
  throw new Error('found no free port between 12000 and 31000')
}

export type TestEngine = {
  /** `postgresql://…/postgres` of the superuser. */
  connectionString: string
  /** Stops it at once (`immediate`) or in order, for tests that take the control database away. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  /** Stops it and removes its files. */
  remove(): Promise<void>
}

/** Starts a throw-away engine instance on a private port and directory. */
export async function startTestEngine(): Promise<TestEngine> {
  const bin = join(testEnginePrefix(), 'bin')
  const user = engineUser()
  const directory = mkdtempSync('/tmp/floe-control-')
  chmodSync(directory, 0o700)
  if (user) chownSync(directory, user.uid, user.gid)
  const dataDirectory = join(directory, 'pgdata')
  // web's types of the environment ask for more than an engine needs
  const environment = { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8' } as unknown as NodeJS.ProcessEnv
  const options = { ...user, cwd: '/', env: environment }
  await run(
    join(bin, 'initdb'),
    ['-D', dataDirectory, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'],
    options,
  )
  const port = await freePort()
  const connectionString = `postgresql://postgres@127.0.0.1:${port}/postgres`
  let engine: ChildProcess | undefined

  async function start() {
    const settings = {
      port: String(port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: directory,
      fsync: 'off',
      shared_buffers: '64MB',
      max_connections: '200',
      autovacuum: 'off',
    }
    const child = spawn(
      join(bin, 'postgres'),
      [
        '-D',
        dataDirectory,
        ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      { ...options, stdio: ['ignore', 'ignore', 'pipe'] },
    )
    engine = child
    let log = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-10_000)
    })
    const end = Date.now() + 30_000
    for (;;) {
      if (child.exitCode !== null) throw new Error(`test engine did not start: ${log}`)
      const client = new pg.Client({ connectionString })
      try {
        await client.connect()
        await client.end()
        return
      } catch (error) {
        await client.end().catch(() => {})
        if (Date.now() > end) throw new Error(`test engine does not answer: ${log}`, { cause: error })
        await pause(50)
      }
    }
  }

  async function stop(mode: 'fast' | 'immediate' = 'immediate') {
    const child = engine
    engine = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await ended
  }

  await start()
  return {
    connectionString,
    start,
    stop,
    async remove() {
      await stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

export type TestDatabase = Database & {
  connectionString: string
  /** The same database as one of the processes reaches it: with the privileges of its role and no more. */
  as: Record<keyof typeof roleNames, Database & { connectionString: string }>
  drop(): Promise<void>
}

/** Owns every control database of a test engine; no superuser. */
const owner = 'console_owner'
const template = 'console_template'
/** Files of a suite that want the template at the same moment wait for the one that makes it. */
const TEMPLATE_LOCK = 72_707_371

const urlOf = (engineConnectionString: string, role: string, name: string) => {
  const url = new URL(engineConnectionString)
  url.username = role
  url.pathname = `/${name}`
  return url.toString()
}

/**
 * Makes the database that the others of the engine are copies of, where it is not there yet: migrations are most of the
 * work of a control database. It is marked as a template last: no file takes one that could not be completed.
 */
async function makeTemplate(admin: pg.Client, engineConnectionString: string): Promise<void> {
  await admin.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK])
  const { rows } = await admin.query('SELECT datistemplate AS made FROM pg_database WHERE datname = $1', [
    template,
  ])
  if (!rows[0]?.made) {
    for (const role of [owner, ...Object.values(roleNames)]) await admin.query(`CREATE ROLE ${role} LOGIN`)
    await admin.query(`CREATE DATABASE ${template} OWNER ${owner}`)
    const connectionString = urlOf(engineConnectionString, owner, template)
    await deployMigrations({ connectionString })
    await applyGrants({ connectionString })
    await admin.query(`ALTER DATABASE ${template} IS_TEMPLATE true`)
  }
  await admin.query('SELECT pg_advisory_unlock($1)', [TEMPLATE_LOCK])
}

/**
 * A control database of its own on a test engine: migrated by the deploy path of production, owned by a role that is no
 * superuser, with the grants of an installation. It is itself the owner's; what a process does belongs on `as`.
 */
export async function createTestDatabase(engineConnectionString: string): Promise<TestDatabase> {
  const name = `console_${randomBytes(6).toString('hex')}`
  const admin = new pg.Client({ connectionString: engineConnectionString })
  await admin.connect()
  try {
    await makeTemplate(admin, engineConnectionString)
    await admin.query(`CREATE DATABASE ${name} OWNER ${owner} TEMPLATE ${template}`)
    // grants on the database itself are not copied
    for (const statement of grantStatements(name) as string[])
      if (statement.includes(' ON DATABASE ')) await admin.query(statement)
  } finally {
    await admin.end()
  }
  const open = (role: string) => {
    const connectionString = urlOf(engineConnectionString, role, name)
    return { ...createDatabase({ connectionString, applicationName: 'floe test' }), connectionString }
  }
  const database = open(owner)
  const as = { web: open(roleNames.web), controller: open(roleNames.controller) }
  return {
    ...database,
    as,
    async drop() {
      await Promise.all([database, as.web, as.controller].map((d) => d.close()))
      const client = new pg.Client({ connectionString: engineConnectionString })
      await client.connect()
      await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
      await client.end()
    },
  }
}

/** A host and an instance on it, for tests that need them to be there. */
export async function insertTestInstance(
  db: Database,
  more: { name?: string; hostId?: string } = {},
): Promise<{ hostId: string; instanceId: string; name: string }> {
  const hostId = more.hostId ?? randomUUID()
  const instanceId = randomUUID()
  const name = more.name ?? `i-${instanceId.slice(0, 8)}`
  await db.pool.query(
    `INSERT INTO host (id, name, "agentUrl") VALUES ($1, $2, 'https://127.0.0.1:1') ON CONFLICT (id) DO NOTHING`,
    [hostId, `host-${hostId.slice(0, 8)}`],
  )
  await db.pool.query(`INSERT INTO instance (id, name, "hostId", intent) VALUES ($1, $2, $3, 'running')`, [
    instanceId,
    name,
    hostId,
  ])
  return { hostId, instanceId, name }
}

/** Audit rows of so many days ago, oldest first, chained as they would have been then; nobody but the owner can do that. */
export async function insertAuditRows(db: Database, daysAgo: readonly number[]): Promise<void> {
  await inTransaction(db.pool, async (tx) => {
    await tx.query('ALTER TABLE audit_event DISABLE TRIGGER audit_event_chained')
    await tx.query(
      `CREATE FUNCTION pg_temp.insert_row(days integer) RETURNS void LANGUAGE plpgsql AS $$
       DECLARE e audit_event; c audit_chain;
       BEGIN
         SELECT * INTO c FROM audit_chain;
         e.id := c."headId" + 1; e.at := date_trunc('milliseconds', now() - make_interval(days => days));
         e.actor := 'u'; e."actorName" := 'Ada'; e.action := 'instance.stop'; e.outcome := 'allowed';
         e."previousHash" := c."headHash"; e.hash := audit_event_hash(e);
         INSERT INTO audit_event VALUES (e.*);
         UPDATE audit_chain SET "headId" = e.id, "headHash" = e.hash;
       END $$`,
    )
    await tx.query(
      'SELECT pg_temp.insert_row(d) FROM unnest($1::int[]) WITH ORDINALITY AS r (d, n) ORDER BY n',
      [daysAgo],
    )
    await tx.query('DROP FUNCTION pg_temp.insert_row(integer)')
    await tx.query('ALTER TABLE audit_event ENABLE TRIGGER audit_event_chained')
  })
}
