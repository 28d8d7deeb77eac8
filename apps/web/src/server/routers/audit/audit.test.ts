import { insertAuditEvent } from '@floe/db'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

test('an admin reads audit rows page by page and filtered; nobody below does', async () => {
  const admin = await it.callerOf((await it.signedIn('admin')).headers)
  for (let n = 1; n <= 5; n++)
    await insertAuditEvent(it.ports.database.pool, {
      actor: { id: 'u', name: 'Ada' },
      action: 'instance.stop',
      outcome: 'allowed',
      objectKind: 'instance',
      objectId: `id-${n}`,
      detail: { name: `i-${n}` },
    })
  const first = await admin.audit.list({ actor: 'Ada', limit: 3 })
  expect(first.events.map((e) => e.objectName)).toEqual(['i-5', 'i-4', 'i-3'])
  const second = await admin.audit.list({ actor: 'Ada', limit: 3, cursor: first.nextCursor as string })
  expect(second).toMatchObject({ events: [{ objectId: 'id-2' }, { objectId: 'id-1' }], nextCursor: null })
  await expect(admin.audit.list({ cursor: 'x' })).rejects.toThrow('cursor is not one of audit.list')
  const signIns = await admin.audit.list({ action: 'session', outcome: 'allowed' })
  expect(signIns.events.length).toBeGreaterThan(0)

  for (const role of ['viewer', 'operator'] as const) {
    const { headers, userId } = await it.signedIn(role)
    const caller = await it.callerOf(headers)
    await expect(caller.audit.list()).rejects.toThrow('may not do this')
    await expect(caller.audit.verify()).rejects.toThrow('may not do this')
    const { events } = await admin.audit.list({ actor: userId, outcome: 'denied' })
    expect(events.map((e) => e.action)).toEqual(['audit.verify', 'audit.list'])
  }
})

test('the chain is verified, and the first row that was changed is named', async () => {
  const owner = await it.callerOf((await it.signedIn('owner')).headers)
  const before = await owner.audit.verify()
  expect(before).toMatchObject({ anchorId: '0', broken: null })
  expect(before).not.toHaveProperty('known')
  expect(await owner.audit.verify({ head: before.headHash })).toMatchObject({
    known: { eventId: before.headId },
  })
  expect(await owner.audit.verify({ head: 'f'.repeat(64) })).toMatchObject({ broken: null, known: null })
  await it.database.pool.query(`UPDATE audit_event SET "actorName" = 'somebody else' WHERE id = 2`)
  expect(await owner.audit.verify()).toMatchObject({
    rows: 1,
    broken: { kind: 'changed', eventId: '2', message: 'audit row 2 was changed after it was written' },
  })
})
