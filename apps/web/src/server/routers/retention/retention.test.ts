import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

const DAY = 86_400

test('how long each kind is kept is told and changed by an admin, with an audit row', async () => {
  const admin = await it.callerOf((await it.signedIn('admin')).headers)
  const keep = async () =>
    Object.fromEntries((await admin.retention.list()).retention.map((r) => [r.kind, r.keepSeconds]))
  expect(await keep()).toEqual({
    'sample-1s': 6 * 3_600,
    'sample-10s': 7 * DAY,
    'sample-1m': 90 * DAY,
    operation: 90 * DAY,
    incident: 180 * DAY,
    session: 7 * DAY,
    audit: 400 * DAY,
  })
  await admin.retention.set({ kind: 'operation', keepSeconds: 30 * DAY })
  await admin.retention.set({ kind: 'sample-10s', keepSeconds: 14 * DAY })
  expect(await keep()).toMatchObject({ operation: 30 * DAY, 'sample-10s': 14 * DAY })
  const { rows } = await it.database.pool.query(
    `SELECT "objectId" FROM audit_event WHERE action = 'retention.set' ORDER BY id`,
  )
  expect(rows.map((r) => r.objectId)).toEqual(['operation', 'sample-10s'])
})

test('records are kept a day at least, and an operator changes nothing', async () => {
  const admin = await it.callerOf((await it.signedIn('admin')).headers)
  await expect(admin.retention.set({ kind: 'operation', keepSeconds: 3_600 })).rejects.toThrow(
    'at least a day',
  )
  const operator = await it.callerOf((await it.signedIn('operator')).headers)
  await expect(operator.retention.set({ kind: 'operation', keepSeconds: DAY })).rejects.toThrow(
    'may not do this',
  )
})

test('only the owner says how long audit rows are kept, 90 days at least; that leaves a row, and so does a refusal', async () => {
  const [admin, owner] = await Promise.all(
    (['admin', 'owner'] as const).map(async (role) => it.callerOf((await it.signedIn(role)).headers)),
  )
  const keepSeconds = 100 * DAY
  await expect(admin?.retention.set({ kind: 'audit', keepSeconds })).rejects.toThrow('may not do this')
  await expect(owner?.retention.set({ kind: 'audit', keepSeconds: 90 * DAY - 1 })).rejects.toThrow(
    'at least 90 days',
  )
  await owner?.retention.set({ kind: 'audit', keepSeconds })
  const { rows } = await it.database.pool.query(
    `SELECT outcome, detail FROM audit_event WHERE action = 'retention.set' AND (outcome = 'denied' OR "objectId" = 'audit')
      ORDER BY id DESC LIMIT 2`,
  )
  expect(rows).toEqual([
    { outcome: 'allowed', detail: { keepSeconds } },
    { outcome: 'denied', detail: expect.objectContaining({ code: 'session.role_too_low' }) },
  ])
})
