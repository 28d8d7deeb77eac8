import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '../testing/control-database'
import { endLeasesOf, LeaseLostError, releaseLease, requireLease, takeLease } from './lease'
import { writeReport } from './observation'
import { leaseOperations, renewOperationLeases } from './operation-lease'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

/** Run out already: one of no time at all lasts until the end of its millisecond. */
const OVER_MS = -1
const take = (owner: string, leaseMs = 60_000, name = 'observe:x') =>
  takeLease(db.pool, { name, owner, leaseMs })

test('a lease has one owner; its number grows when it changes hands and stays while it is renewed', async () => {
  const first = await take('a')
  expect(first?.token).toBe('1')
  expect(await take('b')).toBeUndefined()
  expect((await take('a'))?.token).toBe('1')
  await releaseLease(db.pool, first as NonNullable<typeof first>)
  expect((await take('b'))?.token).toBe('2')
  expect(await take('a')).toBeUndefined()
})

test('of many who want an expired lease at once, one gets it', async () => {
  await take('old', OVER_MS, 'many')
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => take(`c${i}`, 60_000, 'many')))
  expect(answers.filter((a) => a !== undefined)).toHaveLength(1)
})

test('a write under a lease that has changed hands, or run out, writes nothing', async () => {
  const { hostId } = await insertTestInstance(db)
  const lost = await take('a', OVER_MS, 'fenced')
  await take('b', 60_000, 'fenced')
  const report = writeReport(db.pool, lost as NonNullable<typeof lost>, {
    hostId,
    facts: {} as never,
    instances: [],
  })
  await expect(report).rejects.toThrow(LeaseLostError)
  expect((await db.pool.query('SELECT "observedAt" FROM host WHERE id = $1', [hostId])).rows).toEqual([
    { observedAt: null },
  ])
  const expired = await take('c', OVER_MS, 'run out')
  await expect(requireLease(db.pool, expired as NonNullable<typeof expired>)).rejects.toThrow(LeaseLostError)
})

test('leases of a dead owner end at once, those of others stay', async () => {
  await take('dead', 60_000, 'd')
  await take('alive', 60_000, 'e')
  await endLeasesOf(db.pool, ['dead'])
  expect(await take('next', 60_000, 'd')).toBeDefined()
  expect(await take('next', 60_000, 'e')).toBeUndefined()
})

test('no operation is leased to two at once, and a busy host’s queue waits while its running ones are taken over', async () => {
  const ids: string[] = []
  let hostId = ''
  for (let i = 0; i < 40; i++) {
    const instance = await insertTestInstance(db, hostId ? { hostId } : {})
    hostId = instance.hostId
    const { rows } = await db.pool.query(
      `INSERT INTO operation (id, kind, input, "instanceId", actor, "actorName")
       VALUES (gen_random_uuid(), 'start-instance', '{}', $1, 't', 't') RETURNING id`,
      [instance.instanceId],
    )
    ids.push(rows[0].id)
  }
  const lease = (owner: string, limit: number, busyHostIds: string[] = []) =>
    leaseOperations(db.pool, { owner, leaseMs: 60_000, limit, busyHostIds })
  const answers = (await Promise.all(Array.from({ length: 8 }, (_, i) => lease(`c${i}`, 4)))).flat()
  expect(new Set(answers.map((h) => h.operationId)).size).toBe(answers.length)
  expect(await lease('late', 100, [hostId])).toEqual([])
  const rest = await lease('late', 100)
  expect(answers.length + rest.length).toBe(40)

  const [taken] = answers as [(typeof answers)[0]]
  await db.pool.query(
    `UPDATE operation SET state = 'running', "leaseExpiresAt" = now() - interval '1 ms' WHERE id = $1`,
    [taken.operationId],
  )
  const again = await lease('other', 100, [hostId])
  expect(again.map((h) => h.operationId)).toEqual([taken.operationId])
  expect(await renewOperationLeases(db.pool, [taken], 60_000)).toEqual(new Set())
  expect(await renewOperationLeases(db.pool, again, 60_000)).toEqual(new Set([taken.operationId]))
})
