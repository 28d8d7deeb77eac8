import type { HostCheck } from '@floe/domain'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { inTransaction } from '../database'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '../testing/control-database'
import {
  askHostCheck,
  endHostCheck,
  keepHostCheck,
  readHostCheck,
  showHostCheck,
  takeHostChecks,
} from './host-check'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

let hostId: string
beforeEach(async () => {
  hostId = (await insertTestInstance(db)).hostId
  // those of other tests
  await db.pool.query('DELETE FROM host_check WHERE "endedAt" IS NULL')
})

const actor = { kind: 'user' as const, id: 'a', name: 'Ann' }
const ask = () => inTransaction(db.pool, (tx) => askHostCheck(tx, { hostId, actor }))
const take = (leaseMs = 10_000) => takeHostChecks(db.pool, { leaseMs, limit: 10 })
const end = (checkId: string, how: Parameters<typeof endHostCheck>[2]) =>
  inTransaction(db.pool, (tx) => endHostCheck(tx, checkId, how))
const told = (host: string): { check: HostCheck } => ({
  check: {
    ...{ version: 1, host, kernel: '6', cpus: 2, memoryBytes: 1, container: false },
    ...{ disks: [], lines: [] },
  },
})
const fault = { code: 'agent.unreachable', message: 'it does not answer' }
const rows = async () =>
  (await db.pool.query('SELECT 1 FROM host_check WHERE "hostId" = $1', [hostId])).rowCount

test('while a check of a host is open, every other request is that one, and one controller has it', async () => {
  const asked = await Promise.all([1, 2, 3, 4].map(ask))
  expect(new Set(asked.map((a) => a.checkId)).size).toBe(1)
  expect(asked.filter((a) => a.created)).toHaveLength(1)
  const { checkId } = asked[0] as { checkId: string }
  expect(await readHostCheck(db.pool, checkId)).toEqual({ taken: false, ended: null })
  const takers = await Promise.all([take(), take(), take()])
  expect(takers.flat()).toEqual([{ checkId, hostId }])
  expect(await readHostCheck(db.pool, checkId)).toEqual({ taken: true, ended: null })
  expect((await showHostCheck(db.pool, hostId)).openSince).toBeInstanceOf(Date)
})

test('a check whose controller died, or gave it back, is taken again', async () => {
  const { checkId } = await ask()
  await take(-1_000)
  expect(await take()).toEqual([{ checkId, hostId }])
  expect(await take()).toEqual([])
  await keepHostCheck(db.pool, checkId, -1_000)
  expect(await take()).toEqual([{ checkId, hostId }])
})

test('the newest that told something is kept, and beside it why a later one did not', async () => {
  const run = async (how: Parameters<typeof endHostCheck>[2]) => {
    const { checkId } = await ask()
    await take()
    await end(checkId, how)
    // once it has ended it stays as it is
    await end(checkId, { fault: { code: 'late', message: 'late' } })
    return readHostCheck(db.pool, checkId)
  }
  expect(await showHostCheck(db.pool, hostId)).toEqual({ last: null, failed: null, openSince: null })
  expect(await run({ fault })).toEqual({ taken: true, ended: { fault } })
  expect(await showHostCheck(db.pool, hostId)).toMatchObject({ last: null, failed: { fault } })
  expect(await run(told('first'))).toEqual({ taken: true, ended: { fault: null } })
  await run(told('second'))
  expect(await showHostCheck(db.pool, hostId)).toMatchObject({
    last: { check: { host: 'second' }, actorName: 'Ann' },
    failed: null,
  })
  await run({ fault })
  await run({ fault })
  expect(await showHostCheck(db.pool, hostId)).toMatchObject({
    last: { check: { host: 'second' } },
    failed: { fault },
  })
  expect(await rows()).toBe(2)
})
