import type { HostCheck } from '@floe/domain'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { inTransaction } from '../database'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '../testing/control-database'
import {
  askDueHostChecks,
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
  await db.pool.query('UPDATE host SET "observedAt" = NULL')
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

/** As the controller asks, with its privileges. */
const DAY_MS = 86_400_000
const due = () => askDueHostChecks(db.as.controller.pool, DAY_MS)
const seen = (id: string, contract: string, ageMs = 0) =>
  db.pool.query(
    `UPDATE host SET "contractVersion" = $2, "observedAt" = now() - make_interval(secs => $3 / 1000.0) WHERE id = $1`,
    [id, contract, ageMs],
  )
const age = (ms: number) =>
  db.pool.query(
    `UPDATE host_check SET "endedAt" = "endedAt" - make_interval(secs => $2 / 1000.0) WHERE "hostId" = $1`,
    [hostId, ms],
  )
const endOpen = async (how: Parameters<typeof endHostCheck>[2]) => {
  const [taken] = await takeHostChecks(db.pool, { leaseMs: 10_000, limit: 1 })
  await end(taken?.checkId ?? '', how)
}

test('a host that answers is checked though nobody asks: once it is there, and then once a day', async () => {
  expect(await due()).toEqual([])
  await seen(hostId, '1.20')
  expect(await due()).toEqual([hostId])
  // however often and by however many controllers it is looked at, and whoever else asks
  expect((await Promise.all([due(), due(), due()])).flat()).toEqual([])
  expect((await ask()).created).toBe(false)
  await endOpen(told('first'))
  expect((await showHostCheck(db.pool, hostId)).last?.actorName).toBe('Controller')
  await age(DAY_MS - 60_000)
  await seen(hostId, '1.20')
  expect(await due()).toEqual([])
  await age(60_000)
  expect(await due()).toEqual([hostId])
  // one that told nothing is followed by another after an hour, not at once
  await endOpen({ fault })
  expect(await due()).toEqual([])
  await age(3_600_000)
  await seen(hostId, '1.20')
  expect(await due()).toEqual([hostId])
  expect(await rows()).toBe(3)
  // one that a person asked for counts like any other
  await endOpen(told('second'))
  expect(await rows()).toBe(1)
  expect(await due()).toEqual([])
})

test('what another version stored is no check of today', async () => {
  await seen(hostId, '1.20')
  expect(await due()).toEqual([hostId])
  await endOpen(told('first'))
  expect(await due()).toEqual([])
  await db.pool.query(
    `UPDATE host_check SET result = jsonb_set(result, '{version}', '2') WHERE "hostId" = $1`,
    [hostId],
  )
  expect(await due()).toEqual([hostId])
})

test('nobody is asked who does not answer, does not know the task, or is revoked', async () => {
  for (const contract of ['1.18', '0.99', '1', 'x.y', '1.20.1', '99999999999.1']) {
    await seen(hostId, contract)
    expect(await due()).toEqual([])
  }
  await seen(hostId, '1.20', 60_000)
  expect(await due()).toEqual([])
  await seen(hostId, '2.0')
  await db.pool.query('UPDATE host SET "revokedAt" = now() WHERE id = $1', [hostId])
  expect(await due()).toEqual([])
  await db.pool.query('UPDATE host SET "revokedAt" = NULL WHERE id = $1', [hostId])
  expect(await due()).toEqual([hostId])
})

test('a whole fleet that is due is asked a few at a time', async () => {
  for (let i = 0; i < 12; i++) {
    const { hostId: id } = await insertTestInstance(db)
    await seen(id, '1.20')
  }
  const first = await due()
  expect(first).toHaveLength(8)
  expect(await due()).toEqual([])
  for (let i = 0; i < 3; i++) await endOpen(told('one'))
  expect(await due()).toHaveLength(3)
})

test('a check that another version stored is told as such, and not as none', async () => {
  const { checkId } = await ask()
  await take()
  await end(checkId, told('later'))
  await db.pool.query(`UPDATE host_check SET result = '{"version": 2}' WHERE id = $1`, [checkId])
  const unreadable = { fault: { code: 'host.check_unreadable' } }
  expect(await showHostCheck(db.pool, hostId)).toMatchObject({ last: null, failed: unreadable })
})
