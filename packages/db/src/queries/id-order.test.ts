import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { inTransaction } from '../database'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '../testing/control-database'
import { type AuditPosition, insertAuditEvent, listAuditEvents } from './audit'
import { readOperationLog } from './operation'
import {
  insertSettingChanges,
  insertSettingRevision,
  listSettingChanges,
  listSettingRevisions,
} from './setting-change'

// ids that cross 9 → 10, 99 → 100 and 999 → 1000 sort as numbers only
const ROWS = 1_050

let db: TestDatabase
let instanceId: string
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
  instanceId = (await insertTestInstance(db)).instanceId
})
afterAll(() => db.drop())

async function insertOperation(): Promise<string> {
  const id = randomUUID()
  await db.pool.query(
    `INSERT INTO operation (id, kind, state, input, "instanceId", actor, "actorName", "endedAt")
     VALUES ($1, 'change-settings', 'succeeded', '{}', $2, 'u', 'Ada', now())`,
    [id, instanceId],
  )
  return id
}

const numbers = (from: number, to: number) =>
  Array.from({ length: Math.abs(to - from) + 1 }, (_, i) => from + Math.sign(to - from) * i)

test('a log is read whole and in order, whatever the size of its pages', async () => {
  const operationId = await insertOperation()
  await db.pool.query(
    `INSERT INTO operation_log ("operationId", text) SELECT $1, n::text FROM generate_series(1, $2::int) AS n`,
    [operationId, ROWS],
  )
  for (const limit of [7, 100, 1_000]) {
    const read: number[] = []
    for (let afterId = '0'; ; ) {
      const page = await readOperationLog(db.pool, { operationId, afterId, limit })
      read.push(...page.map((line) => Number(line.text)))
      const last = page.at(-1)
      if (!last) break
      afterId = last.id
    }
    expect(read).toEqual(numbers(1, ROWS))
  }
})

test('the newest revision of settings is the current one, and each is its own row', async () => {
  for (let n = 1; n <= 120; n++) {
    const operationId = await insertOperation()
    await inTransaction(db.pool, async (tx) => {
      await insertSettingRevision(tx, operationId, { managed: { work_mem: `${n}MB` } })
      await insertSettingChanges(tx, operationId, [
        { name: 'work_mem', oldValue: `${n - 1}MB`, newValue: `${n}MB`, pendingRestart: false },
      ])
    })
  }
  const held = (revisions: { managed: Record<string, string> }[]) =>
    revisions.map((s) => Number.parseInt(s.managed.work_mem as string, 10))
  const { rows } = await db.pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [instanceId])
  const clusterId = rows[0].clusterId as string
  for (const scope of [{ instanceId }, { clusterId }]) {
    const all = await listSettingRevisions(db.pool, scope)
    expect(held(all)).toEqual(numbers(120, 1))
    // the newest, the one before them and the oldest
    expect(held(await listSettingRevisions(db.pool, scope, { limit: 25 }))).toEqual([...numbers(120, 95), 1])
    expect(held(await listSettingRevisions(db.pool, scope, { limit: 1, asOf: all[70]?.id }))).toEqual([
      120, 119, 50, 1,
    ])
    const changes = await listSettingChanges(db.pool, scope, { limit: 30 })
    expect(changes.map((c) => c.newValue)).toEqual(numbers(120, 91).map((n) => `${n}MB`))
  }
})

test('of a member that changed seldom, the revision that held before the newest ones is listed, too', async () => {
  const { rows } = await db.pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [instanceId])
  const clusterId = rows[0].clusterId as string
  const seldom = (await insertTestInstance(db)).instanceId
  await db.pool.query('UPDATE instance SET "clusterId" = $2 WHERE id = $1', [seldom, clusterId])
  const write = async (of: string, value: string) => {
    const operationId = await insertOperation()
    const managed = { work_mem: value }
    await inTransaction(db.pool, (tx) => insertSettingRevision(tx, operationId, { managed, instanceId: of }))
  }
  for (const value of ['1GB', '2GB']) await write(seldom, value)
  for (let n = 1; n <= 20; n++) await write(instanceId, `${n}kB`)
  await write(seldom, '3GB')
  const revisions = await listSettingRevisions(db.pool, { clusterId }, { limit: 10 })
  const own = revisions.filter((s) => s.instanceId === seldom).map((s) => s.managed.work_mem)
  expect(own).toEqual(['3GB', '2GB', '1GB'])
})

test('audit rows page from newest to oldest without leaving one out', async () => {
  for (let n = 1; n <= 120; n++)
    await insertAuditEvent(db.pool, {
      actor: { id: 'u', name: 'Ada' },
      action: `test.${n}`,
      outcome: 'allowed',
    })
  const read: string[] = []
  for (let before: AuditPosition | undefined; ; ) {
    const page = await listAuditEvents(db.pool, { limit: 50, before })
    read.push(...page.map((row) => row.action))
    before = page.at(-1)
    if (!before) break
  }
  expect(read).toEqual(numbers(120, 1).map((n) => `test.${n}`))
})
