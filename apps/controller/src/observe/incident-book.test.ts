import { type LeaseHold, LeaseLostError, listIncidents, takeLease } from '@floe/db'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '@floe/db/testing'
import { type IncidentKey, type IncidentKind, type IncidentReport, incidentKinds } from '@floe/domain'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { keptLog } from '../testing/controllers-fixture'
import { IncidentBook } from './incident-book'

let db: TestDatabase
let hostId: string
let hold: LeaseHold
const lease = (owner: string) => takeLease(db.pool, { name: `observe:${hostId}`, owner, leaseMs: 60_000 })
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
  hostId = (await insertTestInstance(db)).hostId
  hold = (await lease('this lane')) as LeaseHold
})
beforeEach(() => db.pool.query('DELETE FROM incident'))
afterAll(() => db.drop())

const AGES_MS = 3_600_000
/** A book of a lane that has just begun, and its clock. */
function book() {
  const clock = { now: 0 }
  return {
    clock,
    book: new IncidentBook(db, { hostId }, keptLog(), { hold: () => hold, now: () => clock.now }),
  }
}
const kinds = Object.keys(incidentKinds) as IncidentKind[]
// one id where a kind may have two: a book reads the kind only
const keyOf = (kind: IncidentKind): IncidentKey => `${kind}:x`
const ofKind = (kind: IncidentKind): IncidentReport => ({
  key: keyOf(kind),
  severity: incidentKinds[kind].severity,
  title: kind,
  hostId,
})
const open = async () => (await listIncidents(db.pool)).map((i) => i.key)

test('a lane closes what the lane before it opened, and a watch what the watch did, and neither what is of others', async () => {
  const before = book()
  await before.book.settle(kinds.map(ofKind), () => true)
  before.clock.now = AGES_MS
  await before.book.settle(kinds.map(ofKind), () => true)
  expect((await open()).sort()).toEqual(kinds.map((kind) => keyOf(kind)).sort())

  // a controller that was restarted, or another one that took the lease over
  const after = book()
  expect([...(await after.book.open()).keys()]).toContain('instance-left:x')
  await after.book.settle([], () => true)
  const others = kinds.filter((kind) => incidentKinds[kind].openedBy !== 'host lane')
  expect((await open()).sort()).toEqual(others.map((kind) => keyOf(kind)).sort())

  // those of clusters are the watch's, wherever their members are
  const watch = new IncidentBook(db, 'clusters', keptLog(), { hold: () => hold })
  await watch.settle([], () => true)
  const ofNoBook = others.filter((kind) => incidentKinds[kind].openedBy !== 'cluster watch')
  expect(ofNoBook).toContain('operation-step')
  expect((await open()).sort()).toEqual(ofNoBook.map((kind) => keyOf(kind)).sort())
})

test('the time of what is held counts, and it is opened as soon as it is held no longer', async () => {
  const { clock, book: watch } = book()
  const held = ofKind('no-primary')
  const settle = (isHeld: boolean) =>
    watch.settle(
      [held],
      () => true,
      () => isHeld,
    )
  await settle(true)
  clock.now = AGES_MS
  await settle(true)
  expect(await open()).toEqual([])
  await settle(false)
  expect(await open()).toEqual(['no-primary:x'])
  // once it is open it stays so as long as its cause lasts
  await settle(true)
  expect(await open()).toEqual(['no-primary:x'])
})

test('what ends within its grace is never opened, and what lasts is opened once', async () => {
  const { clock, book: lane } = book()
  const waits = ofKind('commits-wait')
  const grace = incidentKinds['commits-wait'].graceMs
  await lane.settle([waits, ofKind('instance-crashed')], () => true)
  expect(await open()).toEqual(['instance-crashed:x'])
  clock.now = grace - 1
  await lane.settle([waits], () => true)
  await lane.settle([], () => true)
  clock.now = grace
  await lane.settle([waits], () => true)
  expect(await open()).toEqual([])
  clock.now = 2 * grace
  for (let i = 0; i < 3; i++) await lane.settle([waits], () => true)
  expect(await open()).toEqual(['commits-wait:x'])
  // it is over at once
  await lane.settle([], () => true)
  expect(await open()).toEqual([])
})

test('a lane whose lease has gone to another one opens and closes nothing', async () => {
  const before = book()
  await before.book.settle([ofKind('instance-missing')], () => true)
  before.clock.now = AGES_MS
  await before.book.settle([ofKind('instance-missing')], () => true)
  const [opened] = await open()
  await db.pool.query(`UPDATE lease SET "expiresAt" = clock_timestamp() - interval '1 ms'`)
  const other = await lease('another lane')
  await expect(before.book.settle([ofKind('host-offline')], () => true)).rejects.toThrow(LeaseLostError)
  expect(await open()).toEqual([opened])
  await db.pool.query(`UPDATE lease SET "expiresAt" = clock_timestamp() - interval '1 ms'`)
  hold = (await lease('this lane')) as LeaseHold
  expect(hold.token).not.toBe(other?.token)
})
