import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '../testing/control-database'
import { listRecoveries, putRecovery } from './recovery'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

const found = (startedAt: number, torn: number) => ({
  kind: 'crash',
  policy: 'checksum',
  startedAt,
  endedAt: startedAt + 120,
  start: { beganAt: startedAt - 20, readyAt: startedAt + 900 },
  checked: 4_000_000_000,
  torn,
  repaired: torn - 1,
  cleared: 1,
  bytes: torn * 8_192,
  sources: [{ source: '127.0.0.1:5501/postgres', pages: torn, bytes: torn * 8_192 }],
})

test('each recovery is one row, however often it is told, newest first', async () => {
  const { instanceId } = await insertTestInstance(db)
  const first = found(1_790_000_000_123, 3)
  await putRecovery(db.pool, instanceId, first)
  await putRecovery(db.pool, instanceId, first)
  await putRecovery(db.pool, instanceId, found(1_790_000_900_000, 7))
  expect((await listRecoveries(db.pool, instanceId)).map((r) => r.torn)).toEqual([7, 3])
  expect((await listRecoveries(db.pool, instanceId))[1]).toEqual(first)
  expect(await listRecoveries(db.pool, instanceId, 1)).toHaveLength(1)
})

test('an agent that does not know how long the start took takes nothing away', async () => {
  const { instanceId } = await insertTestInstance(db)
  await putRecovery(db.pool, instanceId, found(1_790_000_000_000, 1))
  await putRecovery(db.pool, instanceId, { ...found(1_790_000_000_000, 1), start: null })
  await putRecovery(db.pool, instanceId, { ...found(1_790_000_900_000, 0), start: null })
  expect(await listRecoveries(db.pool, instanceId)).toMatchObject([
    { start: null },
    { start: { beganAt: 1_789_999_999_980, readyAt: 1_790_000_000_900 } },
  ])
})

test('what is told later of the same one counts, and of an instance nobody knows nothing is kept', async () => {
  const { instanceId } = await insertTestInstance(db)
  await putRecovery(db.pool, instanceId, { ...found(1_790_000_000_000, 1), endedAt: null })
  await putRecovery(db.pool, instanceId, found(1_790_000_000_000, 2))
  expect(await listRecoveries(db.pool, instanceId)).toMatchObject([{ torn: 2, endedAt: 1_790_000_000_120 }])
  const unknown = randomUUID()
  await putRecovery(db.pool, unknown, found(1, 1))
  expect(await listRecoveries(db.pool, unknown)).toEqual([])
})
