import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
// @ts-expect-error a plain script, also run by the launcher
import { deployMigrations } from '../tools/migrate-deploy.mjs'
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
