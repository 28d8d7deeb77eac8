import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
// @ts-expect-error a plain script, also run by the launcher
import { deployMigrations } from '../tools/migrate-deploy.mjs'
import { createDatabase, inTransaction } from './database'
import { verifyAuditChain } from './queries/audit'
import { insertSettingRevision, listSettingRevisions } from './queries/setting-change'
import { createTestDatabase, type TestDatabase } from './testing/control-database'

const run = promisify(execFile)
const room = join(import.meta.dirname, '..')
let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

const prisma = (...args: string[]) =>
  run(process.execPath, [join(room, 'tools/prisma.mjs'), ...args], {
    cwd: room,
    env: { ...process.env, DATABASE_URL: db.connectionString },
  }).then(
    ({ stdout }) => ({ status: 0, stdout }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      status: error.code,
      stdout: error.stdout + error.stderr,
    }),
  )

test('the WASM schema engine is the very engine of the Prisma command line', () => {
  const require = createRequire(import.meta.url)
  const versions = createRequire(
    createRequire(require.resolve('prisma/package.json')).resolve('@prisma/engines'),
  )
  const { prisma: version } = versions('@prisma/engines-version/package.json') as {
    prisma?: { enginesVersion: string }
  }
  const wasm = require('../package.json').devDependencies['@prisma/schema-engine-wasm'] as string
  expect(version?.enginesVersion).toMatch(/^[0-9a-f]{40}$/)
  expect(wasm.endsWith(`.${version?.enginesVersion}`)).toBe(true)
})

test('what the production deploy applied is exactly the Prisma schema, and Prisma calls it up to date', {
  timeout: 120_000,
}, async () => {
  const diff = await prisma(
    'migrate',
    'diff',
    '--from-config-datasource',
    '--to-schema',
    'prisma/schema.prisma',
    '--exit-code',
  )
  expect(diff).toMatchObject({ status: 0, stdout: expect.stringContaining('No difference') })
  const status = await prisma('migrate', 'status')
  expect(status).toMatchObject({ status: 0, stdout: expect.stringContaining('up to date') })
})

test('deploying again applies nothing, four at once apply each migration once', async () => {
  expect(await deployMigrations({ connectionString: db.connectionString })).toEqual({
    applied: [],
    warnings: [],
  })
  const admin = new pg.Client({ connectionString: inject('engineConnectionString') })
  await admin.connect()
  await admin.query('CREATE DATABASE four_at_once')
  try {
    const url = new URL(inject('engineConnectionString'))
    url.pathname = '/four_at_once'
    const runs = await Promise.all(
      [1, 2, 3, 4].map(
        () => deployMigrations({ connectionString: url.toString() }) as Promise<{ applied: string[] }>,
      ),
    )
    const applied = runs.flatMap((r) => r.applied)
    expect(applied.length).toBeGreaterThan(0)
    expect(new Set(applied).size).toBe(applied.length)
  } finally {
    await admin.query('DROP DATABASE four_at_once WITH (FORCE)')
    await admin.end()
  }
})

/** A database as an earlier version left it: with the migrations before the one named. */
async function earlierDatabase(name: string, firstMissing: string) {
  const folder = join(room, 'prisma/migrations')
  const directory = mkdtempSync(join(tmpdir(), 'floe-migrations-'))
  for (const migration of readdirSync(folder))
    if (migration < firstMissing)
      cpSync(join(folder, migration), join(directory, migration), { recursive: true })
  const admin = new pg.Client({ connectionString: inject('engineConnectionString') })
  await admin.connect()
  await admin.query(`CREATE DATABASE ${name}`)
  const url = new URL(inject('engineConnectionString'))
  url.pathname = `/${name}`
  const connectionString = url.toString()
  await deployMigrations({ connectionString, directory })
  rmSync(directory, { recursive: true })
  const { pool, close } = createDatabase({ connectionString })
  await pool.query(
    `INSERT INTO host (id, name, "agentUrl") VALUES ('00000000-0000-4000-8000-000000000001', 'h', 'u')`,
  )
  await pool.query(
    `INSERT INTO instance (id, name, "hostId", intent)
     SELECT ('00000000-0000-4000-8000-00000000001' || n)::uuid, 'i' || n, '00000000-0000-4000-8000-000000000001', 'running'
       FROM generate_series(1, 2) n`,
  )
  return {
    connectionString,
    pool,
    async drop() {
      await close()
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
      await admin.end()
    },
  }
}

test('audit rows of before the chain are chained, and password verifiers that nobody needs are removed', async () => {
  const old = await earlierDatabase('before_chain', '20261123110000_audit_chain')
  try {
    // ids have gaps where a transaction was rolled back, and begin late where rows were deleted
    await old.pool.query(`SELECT setval('audit_event_id_seq', 40)`)
    await old.pool.query(
      `INSERT INTO audit_event (actor, "actorName", action, outcome, detail)
       SELECT 'u', 'Ada', 'x.y', 'allowed', CASE WHEN n % 2 = 0 THEN '{"n": 1}'::jsonb END FROM generate_series(1, 50) n`,
    )
    await old.pool.query('DELETE FROM audit_event WHERE id IN (41, 50, 51)')
    await old.pool.query(`UPDATE record_retention SET "keepSeconds" = 86400 WHERE kind = 'audit'`)
    await old.pool.query(
      `INSERT INTO operation (id, kind, input, actor, "actorName", state, "endedAt", "instanceId")
       SELECT gen_random_uuid(), 'create-instance', '{"ownerPasswordVerifier": "v"}', 'u', 'Ada', ended, now(), i.id
         FROM instance i, unnest(ARRAY['failed', 'succeeded']) AS ended WHERE i.name = 'i1' OR ended = 'failed'`,
    )
    await deployMigrations(old)
    expect(await verifyAuditChain(old.pool)).toMatchObject({
      rows: 47,
      anchorId: '41',
      headId: '90',
      broken: null,
    })
    await old.pool.query(
      `INSERT INTO audit_event (actor, "actorName", action, outcome) VALUES ('u', 'Ada', 'x.y', 'denied')`,
    )
    expect(await verifyAuditChain(old.pool)).toMatchObject({ rows: 48, headId: '91', broken: null })
    await old.pool.query('DELETE FROM audit_event WHERE id = 60')
    expect((await verifyAuditChain(old.pool)).broken).toMatchObject({ kind: 'missing', eventId: '60' })
    const { rows: verifiers } = await old.pool.query(
      `SELECT i.name, o.input FROM operation o JOIN instance i ON i.id = o."instanceId" ORDER BY i.name`,
    )
    expect(verifiers).toEqual([
      { name: 'i1', input: {} },
      { name: 'i1', input: {} },
      { name: 'i2', input: { ownerPasswordVerifier: 'v' } },
    ])
    const { rows } = await old.pool.query(`SELECT "keepSeconds" FROM record_retention WHERE kind = 'audit'`)
    expect(rows).toEqual([{ keepSeconds: 90 * 86_400 }])
  } finally {
    await old.drop()
  }
})

test('what an earlier version called states of settings are revisions, also in what was asked for', async () => {
  const old = await earlierDatabase('before_revisions', '20261130090000_setting_revisions')
  const instanceId = '00000000-0000-4000-8000-000000000011'
  const operationId = '00000000-0000-4000-8000-000000000021'
  try {
    await old.pool.query(
      `INSERT INTO operation (id, kind, input, actor, "actorName", "instanceId")
       SELECT $1, 'change-settings', $2, 'u', 'Ada', $3`,
      [
        operationId,
        { instanceId, changes: [{ name: 'fsync', value: 'on' }], reason: 'back', stateId: '7' },
        instanceId,
      ],
    )
    await old.pool.query(
      `INSERT INTO setting_state (id, "instanceId", managed, reason, actor, "actorName")
       VALUES (7, $1, '{"fsync": "on"}', 'as it was found', 'u', 'Ada')`,
      [instanceId],
    )
    await old.pool.query(`SELECT setval('setting_state_id_seq', 7)`)
    await deployMigrations(old)
    await inTransaction(old.pool, (tx) =>
      insertSettingRevision(tx, operationId, { managed: { fsync: 'off' }, before: { fsync: 'lost' } }),
    )
    const revisions = await listSettingRevisions(old.pool, { instanceId })
    expect(revisions.map(({ id, managed, reason }) => [id, managed, reason])).toEqual([
      ['8', { fsync: 'off' }, 'back'],
      ['7', { fsync: 'on' }, 'as it was found'],
    ])
    const { rows } = await old.pool.query('SELECT input FROM operation')
    expect(rows).toEqual([
      { input: { instanceId, changes: [{ name: 'fsync', value: 'on' }], reason: 'back', revisionId: '7' } },
    ])
  } finally {
    await old.drop()
  }
})
