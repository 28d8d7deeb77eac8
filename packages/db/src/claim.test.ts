import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
// @ts-expect-error a plain script, also run by the launcher
import { applyGrants as apply } from '../tools/apply-grants.mjs'
// @ts-expect-error a plain script, also run by the launcher
import { claimDatabase } from '../tools/claim-database.mjs'
// @ts-expect-error a plain script, also run by the launcher
import { deployMigrations } from '../tools/migrate-deploy.mjs'
import { startTestEngine, type TestEngine } from './testing/control-database'

const room = join(import.meta.dirname, '..')
const applyGrants = apply as (o: { connectionString: string }) => Promise<void>
const roles = {
  floe_web: { verifier: 'x', connectionLimit: 4 },
  floe_controller: { verifier: 'x', connectionLimit: 4 },
}
const claim = claimDatabase as (o: {
  connectionString: string
  installationId: string
  roles: typeof roles
}) => Promise<void>

// roles are the whole server's: not that of the other tests
let engine: TestEngine
let admin: pg.Client
beforeAll(async () => {
  engine = await startTestEngine()
  admin = new pg.Client({ connectionString: engine.connectionString })
  await admin.connect()
  // as a managed service gives it: no superuser
  await admin.query('CREATE ROLE fleet LOGIN CREATEROLE')
})
afterAll(async () => {
  await admin.end()
  await engine.remove()
})

const urlOf = (database: string, role = 'fleet') => {
  const url = new URL(engine.connectionString)
  url.username = role
  url.pathname = `/${database}`
  return url.toString()
}

async function makeDatabase(name: string): Promise<string> {
  await admin.query(`CREATE DATABASE ${name} OWNER fleet`)
  return urlOf(name)
}

async function query(connectionString: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}

const inspect = async (connectionString: string) => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(room, 'tools/inspect-database.mjs')], {
    env: { ...process.env, DATABASE_URL: connectionString },
  })
  return JSON.parse(stdout).facts
}

const ours = randomUUID()

test('an owner that is no superuser claims an empty database, migrates it and grants what web and controller may', async () => {
  const connectionString = await makeDatabase('ours')
  expect(await inspect(connectionString)).toMatchObject({
    role: 'fleet',
    ownsDatabase: true,
    createsRoles: true,
    encrypted: false,
    encoding: 'UTF8',
    installationId: null,
    relations: [],
    roles: [],
  })
  // also when a run was killed after any of them
  for (let run = 0; run < 2; run++) {
    await claim({ connectionString, installationId: ours, roles })
    await claim({ connectionString, installationId: ours, roles })
    await deployMigrations({ connectionString })
    await applyGrants({ connectionString })
  }
  const mark = `Floe installation ${ours}`
  expect(await inspect(connectionString)).toMatchObject({
    installationId: ours,
    roles: [
      { name: 'floe_controller', mark },
      { name: 'floe_web', mark },
    ],
  })
  expect(await query(urlOf('ours', 'floe_web'), 'SELECT count(*)::int FROM audit_event')).toEqual([
    { count: 0 },
  ])
  await expect(query(urlOf('ours', 'floe_web'), 'SELECT FROM lease')).rejects.toThrow('permission denied')
  await expect(query(urlOf('ours', 'floe_controller'), 'SELECT FROM installation')).rejects.toThrow(
    'permission denied',
  )
})

test('a database of another installation is refused, and so is a server whose roles are another installation’s', async () => {
  await expect(
    claim({ connectionString: urlOf('ours'), installationId: randomUUID(), roles }),
  ).rejects.toThrow(`is that of installation ${ours}`)
  const connectionString = await makeDatabase('second')
  await expect(claim({ connectionString, installationId: randomUUID(), roles })).rejects.toThrow(
    'role "floe_web" was not made for this installation',
  )
  // all or nothing
  expect(await inspect(connectionString)).toMatchObject({ installationId: null, relations: [] })
})

test('a database that holds anything else is refused and left as it is', async () => {
  const connectionString = await makeDatabase('shop')
  await query(connectionString, 'CREATE TABLE _prisma_migrations (id int)')
  await expect(claim({ connectionString, installationId: ours, roles })).rejects.toThrow(
    'not empty: it has public._prisma_migrations',
  )
  expect((await inspect(connectionString)).relations).toEqual(['public._prisma_migrations'])
})

test('of two installations that claim one database at once, one gets it', async () => {
  const connectionString = await makeDatabase('contended')
  const ended = await Promise.allSettled(
    [ours, randomUUID(), randomUUID()].map((installationId) =>
      claim({ connectionString, installationId, roles: {} as typeof roles }),
    ),
  )
  expect(ended.map((e) => e.status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
})

test('a role that was granted to somebody else gets no privileges', async () => {
  await admin.query('CREATE ROLE stranger; GRANT floe_web TO stranger')
  await expect(applyGrants({ connectionString: urlOf('ours') })).rejects.toThrow(
    'role "floe_web" was granted to another role',
  )
  await admin.query('REVOKE floe_web FROM stranger')
  await applyGrants({ connectionString: urlOf('ours') })
})
