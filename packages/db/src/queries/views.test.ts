import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { inTransaction } from '../database'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '../testing/control-database'
import { listCheckpoints } from './checkpoint'
import { showHost } from './host'
import { findInstance, listInstances, showInstance } from './instance'
import { listOperations, readOperationLog, showOperation } from './operation'
import {
  insertSettingChanges,
  insertSettingRevision,
  listSettingChanges,
  listSettingRevisions,
} from './setting-change'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

async function insertOperation(instanceId: string, state: string, input: object = {}): Promise<string> {
  const id = randomUUID()
  await db.pool.query(
    `INSERT INTO operation (id, kind, state, input, "instanceId", actor, "actorName", "endedAt")
     VALUES ($1, 'start-instance', $2, $3, $4, 'u', 'Ada', CASE WHEN $2 IN ('succeeded', 'failed', 'cancelled') THEN now() END)`,
    [id, state, JSON.stringify(input), instanceId],
  )
  return id
}

test('an instance whose last report is too old is unknown, and keeps what was last seen', async () => {
  const { instanceId } = await insertTestInstance(db)
  const seenAgo = (ago: string) =>
    db.pool.query(
      `UPDATE instance SET state = 'running', "observedAt" = now() - $2::interval WHERE id = $1`,
      [instanceId, ago],
    )
  expect(await showInstance(db.pool, instanceId)).toMatchObject({
    state: 'unknown',
    ageMs: null,
    observedAt: null,
  })
  await seenAgo('29 s')
  expect(await showInstance(db.pool, instanceId)).toMatchObject({ state: 'running' })
  await seenAgo('30 s')
  expect(await showInstance(db.pool, instanceId)).toMatchObject({ state: 'unknown', lastState: 'running' })
})

test('a host’s state is the age of its last answer', async () => {
  const { hostId } = await insertTestInstance(db)
  const state = async (ago: string | null) => {
    await db.pool.query(`UPDATE host SET "observedAt" = now() - $2::interval WHERE id = $1`, [hostId, ago])
    return (await showHost(db.pool, hostId))?.state
  }
  expect(await state(null)).toBe('unknown')
  expect(await state('1 s')).toBe('online')
  expect(await state('6 s')).toBe('stale')
  expect(await state('31 s')).toBe('offline')
})

test('an instance is listed with its open operation, and no longer when it is deleted', async () => {
  const { instanceId, name } = await insertTestInstance(db, { name: 'listed-one' })
  const operationId = await insertOperation(instanceId, 'running')
  const found = async () =>
    (await listInstances(db.pool, { search: 'STED-o' })).map((i) => [i.name, i.operation?.operationId])
  expect(await found()).toEqual([[name, operationId]])
  await db.pool.query(`UPDATE instance SET "deletedAt" = now() WHERE id = $1`, [instanceId])
  expect(await found()).toEqual([])
  expect(await findInstance(db.pool, name)).toBeUndefined()
  expect((await showInstance(db.pool, instanceId))?.deletedAt).not.toBeNull()
})

test('operations page from newest to oldest without leaving one out, and show no verifier', async () => {
  const { instanceId } = await insertTestInstance(db)
  const ids: string[] = []
  for (let i = 0; i < 7; i++)
    ids.push(await insertOperation(instanceId, 'failed', { ownerPasswordVerifier: 'SCRAM', n: i }))
  const seen: string[] = []
  let before: { createdAt: Date; operationId: string } | undefined
  for (;;) {
    const page = await listOperations(db.pool, { instanceId, limit: 3, before })
    seen.push(...page.map((o) => o.operationId))
    before = page.at(-1)
    if (page.length < 3) break
  }
  expect([...seen].sort()).toEqual([...ids].sort())
  const shown = await showOperation(db.pool, ids[0] as string)
  expect(shown?.input).toEqual({ n: 0 })
  expect(await listOperations(db.pool, { instanceId, states: ['running'] })).toEqual([])
})

test('a log is read on from the last line seen', async () => {
  const { instanceId } = await insertTestInstance(db)
  const operationId = await insertOperation(instanceId, 'running')
  const write = (text: string) =>
    db.pool.query(`INSERT INTO operation_log ("operationId", text) VALUES ($1, $2)`, [operationId, text])
  await write('one')
  const first = await readOperationLog(db.pool, { operationId })
  await write('two')
  expect(
    (await readOperationLog(db.pool, { operationId, afterId: first[0]?.id })).map((l) => l.text),
  ).toEqual(['two'])
})

test('a confirmed setting is written once per operation, with who asked', async () => {
  const { instanceId } = await insertTestInstance(db)
  const operationId = await insertOperation(instanceId, 'running')
  const confirmed = [{ name: 'work_mem', oldValue: '4MB', newValue: '8MB', pendingRestart: false }]
  const tx = await db.pool.connect()
  await insertSettingChanges(tx, operationId, confirmed)
  await insertSettingChanges(tx, operationId, confirmed)
  tx.release()
  expect(await listSettingChanges(db.pool, { instanceId })).toMatchObject([
    { ...confirmed[0], actorName: 'Ada', operationId },
  ])
  expect(await listSettingChanges(db.pool, { instanceId }, { name: 'other' })).toEqual([])
})

test('a setting that keeps its value is no change, and a file that stays as it is no revision', async () => {
  const { instanceId } = await insertTestInstance(db)
  const recorded = async (oldValue: string | null, newValue: string | null, managed: object) => {
    const operationId = await insertOperation(instanceId, 'succeeded')
    await inTransaction(db.pool, async (tx) => {
      const confirmed = { name: 'fsync', oldValue, newValue, pendingRestart: false }
      await insertSettingChanges(tx, operationId, [confirmed])
      await insertSettingRevision(tx, operationId, { managed: managed as Record<string, string>, before: {} })
    })
    return [
      (await listSettingChanges(db.pool, { instanceId })).filter((c) => c.operationId === operationId).length,
      (await listSettingRevisions(db.pool, { instanceId })).filter((s) => s.operationId === operationId)
        .length,
    ]
  }
  expect(await recorded('on', 'off', { fsync: 'off', work_mem: '8MB' })).toEqual([1, 1])
  expect(await recorded('off', 'off', { work_mem: '8MB', fsync: 'off' })).toEqual([0, 0])
  expect(await recorded('off', null, { work_mem: '8MB' })).toEqual([1, 1])
  expect(await recorded(null, null, { work_mem: '8MB' })).toEqual([0, 0])
  // what becomes explicit has the value that it had
  expect(await recorded('on', 'on', { work_mem: '8MB', fsync: 'on' })).toEqual([0, 1])
})

test('an unknown order of checkpoints falls back to the time, whatever it contains', async () => {
  const answer = listCheckpoints(db.pool, {
    instanceId: randomUUID(),
    orderBy: '1; DROP TABLE host' as never,
  })
  await expect(answer).resolves.toEqual([])
})
