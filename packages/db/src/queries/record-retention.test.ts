import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import {
  createTestDatabase,
  insertAuditRows,
  insertTestInstance,
  type TestDatabase,
} from '../testing/control-database'
import { pruneRecords, readRecordRetention, setRecordRetention } from './record-retention'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

const DAY = 86_400

async function insertOperation(more: {
  instanceId: string
  kind?: string
  endedDaysAgo: number | null
  retryOf?: string
}): Promise<string> {
  const id = randomUUID()
  await db.pool.query(
    `INSERT INTO operation (id, kind, state, input, "instanceId", actor, "actorName", "retryOf", "endedAt")
     VALUES ($1, $2, CASE WHEN $4::float8 IS NULL THEN 'running' ELSE 'succeeded' END, '{}', $3, 'u', 'Ada', $5,
             now() - make_interval(secs => $4::float8 * 86400))`,
    [id, more.kind ?? 'stop-instance', more.instanceId, more.endedDaysAgo, more.retryOf ?? null],
  )
  await db.pool.query(`INSERT INTO operation_log ("operationId", text) VALUES ($1, 'x')`, [id])
  await db.pool.query(
    `INSERT INTO operation_step ("operationId", position, name, title) VALUES ($1, 0, 'stop', 'Stop')`,
    [id],
  )
  return id
}
const ids = async () => {
  const { rows } = await db.pool.query<{ id: string }>('SELECT id FROM operation')
  return new Set(rows.map((r) => r.id))
}
const count = async (table: string) =>
  (await db.pool.query(`SELECT count(*)::int AS n FROM ${table}`)).rows[0].n as number

test('audit rows are kept longest unless somebody says otherwise', async () => {
  const keep = await readRecordRetention(db.as.web.pool)
  expect(Object.keys(keep).sort()).toEqual(['audit', 'incident', 'operation', 'session'])
  expect(keep.audit).toBe(Math.max(...Object.values(keep)))
})

test('ended operations go with their steps and log after their time; what others still need stays', async () => {
  const { instanceId } = await insertTestInstance(db)
  const gone = (await insertTestInstance(db)).instanceId
  await db.pool.query('UPDATE instance SET "deletedAt" = now() WHERE id = $1', [gone])
  const old = await insertOperation({ instanceId, endedDaysAgo: 91 })
  const young = await insertOperation({ instanceId, endedDaysAgo: 89 })
  const created = await insertOperation({ instanceId, kind: 'create-instance', endedDaysAgo: 500 })
  // of one that was made past this console nothing else tells that it is there
  const adopted = await insertOperation({ instanceId, kind: 'adopt-instance', endedDaysAgo: 500 })
  const createdGone = await insertOperation({ instanceId: gone, kind: 'create-instance', endedDaysAgo: 500 })
  const retried = await insertOperation({ instanceId, endedDaysAgo: 200 })
  const open = await insertOperation({ instanceId, endedDaysAgo: null, retryOf: retried })
  expect(await pruneRecords(db.as.controller.pool)).toEqual({
    operation: 2,
    incident: 0,
    session: 0,
    audit: 0,
  })
  const left = await ids()
  expect([old, createdGone].filter((id) => left.has(id))).toEqual([])
  expect([young, created, adopted, retried, open].every((id) => left.has(id))).toBe(true)
  expect(await count('operation_log')).toBe(left.size)
  expect(await count('operation_step')).toBe(left.size)
})

test('audit rows, closed incidents and expired sessions go after their time, open incidents never', async () => {
  await insertAuditRows(db, [401, 399])
  await db.pool.query(
    `INSERT INTO incident (id, key, severity, title, "openedAt", "closedAt")
     SELECT gen_random_uuid(), 'k' || d, 'warning', 't', now() - interval '300 days',
            CASE WHEN d > 0 THEN now() - make_interval(days => d) END FROM unnest(ARRAY[0, 179, 181]) AS d`,
  )
  await db.pool.query(
    `INSERT INTO "user" (id, name, email, "updatedAt") VALUES ('u', 'Ada', 'ada@example.org', now())`,
  )
  await db.pool.query(
    `INSERT INTO session (id, token, "userId", "updatedAt", "expiresAt")
     SELECT 's' || d, 't' || d, 'u', now(), now() - make_interval(days => d) FROM unnest(ARRAY[-1, 6, 8]) AS d`,
  )
  expect(await pruneRecords(db.as.controller.pool)).toMatchObject({ incident: 1, session: 1, audit: 1 })
  expect([await count('audit_event'), await count('incident'), await count('session')]).toEqual([1, 2, 2])
})

test('how long is a matter of the table, but never less than a day, of audit rows 90', async () => {
  await setRecordRetention(db.as.web.pool, 'audit', 90 * DAY)
  expect(await pruneRecords(db.as.controller.pool)).toMatchObject({ audit: 1 })
  for (const [kind, keep] of [
    ['audit', 90 * DAY - 1],
    ['operation', DAY - 1],
  ] as const)
    await expect(setRecordRetention(db.as.web.pool, kind, keep)).rejects.toThrow(
      'record_retention_keep_check',
    )
})

test('more rows than one portion holds go in one maintenance', async () => {
  await insertAuditRows(
    db,
    Array.from({ length: 4_500 }, () => 900),
  )
  expect((await pruneRecords(db.as.controller.pool)).audit).toBe(4_500)
})
