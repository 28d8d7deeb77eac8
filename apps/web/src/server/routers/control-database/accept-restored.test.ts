import { randomUUID } from 'node:crypto'
import { insertTestInstance } from '@floe/db/testing'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
beforeEach(() => it.database.pool.query('DELETE FROM restored_record'))
afterAll(() => it.close())

const asAdmin = async () => it.callerOf((await it.signedIn('admin')).headers)
const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => null,
    (error: { cause: { fault: { code: string } } }) => error.cause.fault.code,
  )
const doubt = async (clusterId: string | null, evidence: object) =>
  it.database.pool.query('INSERT INTO restored_record (id, "clusterId", evidence) VALUES ($1, $2, $3)', [
    randomUUID(),
    clusterId,
    JSON.stringify(evidence),
  ])
const decided = async () =>
  (
    await it.database.pool.query<{ as: string | null; by: string | null }>(
      'SELECT "acceptedAs" AS as, "acceptedByName" AS by FROM restored_record',
    )
  ).rows

test('an admin decides on what is in doubt, once, with an audit row; nobody else can', async () => {
  const admin = await asAdmin()
  expect(await codeOf(admin.controlDatabase.acceptRestored({ as: 'reported' }))).toBe('restored.not_found')
  await doubt(null, { kind: 'restored', backupAt: 1_800_000_000_000 })
  const operator = await it.callerOf((await it.signedIn('operator')).headers)
  expect(await codeOf(operator.controlDatabase.acceptRestored({ as: 'recorded' }))).toBe(
    'session.role_too_low',
  )
  const { accepted } = await admin.controlDatabase.acceptRestored({ as: 'reported' })
  expect(accepted).toEqual([{ clusterName: null, evidence: expect.stringContaining('2027-01-15T08:00:00Z') }])
  expect(await decided()).toEqual([{ as: 'reported', by: 'The admin' }])
  expect(await codeOf(admin.controlDatabase.acceptRestored({ as: 'recorded' }))).toBe('restored.not_found')
  const { rows } = await it.database.pool.query(
    `SELECT outcome, detail->>'as' AS as FROM audit_event
      WHERE action IN ('control_database.accept_restored', 'controlDatabase.acceptRestored') ORDER BY id`,
  )
  expect(rows).toEqual([
    { outcome: 'denied', as: null },
    { outcome: 'allowed', as: 'reported' },
  ])
})

test('what members report is taken over only where it is proven; what is recorded can always be kept', async () => {
  const admin = await asAdmin()
  const { instanceId, name } = await insertTestInstance(it.database)
  const { rows } = await it.database.pool.query<{ id: string }>(
    'SELECT "clusterId" AS id FROM instance WHERE id = $1',
    [instanceId],
  )
  await doubt(rows[0]?.id ?? null, {})
  // its host has never answered
  expect(await codeOf(admin.controlDatabase.acceptRestored({ cluster: name, as: 'reported' }))).toBe(
    'restored.not_proven',
  )
  expect(await decided()).toEqual([{ as: null, by: null }])
  expect(await codeOf(admin.controlDatabase.acceptRestored({ cluster: 'another', as: 'recorded' }))).toBe(
    'restored.not_found',
  )
  await admin.controlDatabase.acceptRestored({ cluster: name, as: 'recorded' })
  expect(await decided()).toEqual([{ as: 'recorded', by: 'The admin' }])
})
