import { listAuditEvents } from '@floe/db'
import { waitUntil } from '@floe/testkit'
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest'
import { DenialRows } from './denial-rows'
import { type ThrowawayConsole, throwawayConsole } from './testing/throwaway-console'

let it: ThrowawayConsole
let made: DenialRows[] = []
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterEach(async () => {
  for (const rows of made) await rows.close()
  made = []
})
afterAll(() => it.close())

function denialRows(windowMs?: number) {
  const rows = new DenialRows(it.ports.database, windowMs)
  made.push(rows)
  return rows
}
async function burst(rows: DenialRows, id: string, count: number) {
  for (let n = 1; n <= count; n++)
    await rows.write(id, {
      actor: { id, name: id },
      action: 'instance.stop',
      outcome: 'denied',
      detail: { code: 'session.role_too_low', n },
    })
}
const written = async (actor: string) =>
  (await listAuditEvents(it.database.pool, { actor, limit: 200 })).map((row) => row.detail)

test('denials beyond the bound are counted, and the count is written though no other denial follows', async () => {
  const rows = denialRows(1_500)
  await burst(rows, 'eve', 100)
  await burst(rows, 'ada', 1)
  expect(await written('eve')).toHaveLength(60)
  await waitUntil('the count is written', async () => (await written('eve')).length === 61, 10_000)
  expect((await written('eve'))[0]).toMatchObject({ n: 100, denialsBeforeWithoutRow: 39 })
  expect(await written('ada')).toEqual([{ code: 'session.role_too_low', n: 1 }])
  // the next window begins anew
  await burst(rows, 'eve', 1)
  expect((await written('eve'))[0]).toEqual({ code: 'session.role_too_low', n: 1 })
})

test('a process that ends writes what it counted', async () => {
  const rows = denialRows()
  await burst(rows, 'mallory', 62)
  await rows.close()
  expect((await written('mallory')).slice(0, 2)).toMatchObject([
    { n: 62, denialsBeforeWithoutRow: 1 },
    { n: 60 },
  ])
})

test('a count that could not be written is written later, with what came meanwhile', async () => {
  const rows = denialRows(500)
  await burst(rows, 'trudy', 61)
  await it.database.pool.query('ALTER TABLE audit_event RENAME TO audit_event_away')
  try {
    await rows.flush()
  } finally {
    await it.database.pool.query('ALTER TABLE audit_event_away RENAME TO audit_event')
  }
  await waitUntil('the count is written', async () => (await written('trudy')).length === 61, 10_000)
  expect((await written('trudy'))[0]).toMatchObject({ n: 61 })
})
