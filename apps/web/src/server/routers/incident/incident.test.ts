import { randomUUID } from 'node:crypto'
import { closeIncidents, openIncident } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { IncidentId, type IncidentKey, InstanceId } from '@floe/domain'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
let operator: Awaited<ReturnType<ThrowawayConsole['signedIn']>>
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  operator = await it.signedIn('operator')
})
beforeEach(() => it.database.pool.query('DELETE FROM incident'))
afterAll(() => it.close())

const open = (key: IncidentKey, more: Partial<Parameters<typeof openIncident>[1]> = {}) =>
  openIncident(it.database.pool, { key, severity: 'warning', title: `title of ${key}`, ...more })
const close = (key: string) => closeIncidents(it.database.pool, [key], 'The host answers again.')
const audited = async (incidentId: string) =>
  (
    await it.database.pool.query(
      `SELECT actor, action, outcome, detail->>'key' AS key FROM audit_event WHERE "objectId" = $1 ORDER BY id`,
      [incidentId],
    )
  ).rows

test('open ones come first, page by page, with where they are, why they are over, and how many are open', async () => {
  const caller = await it.callerOf((await it.signedIn('viewer')).headers)
  expect(await caller.incident.list()).toMatchObject({ incidents: [], open: { total: 0 }, nextCursor: null })
  const { instanceId, name, hostId } = await insertTestInstance(it.database)
  await open('host-offline:a', { instanceId, hostId, severity: 'critical' })
  await open('host-offline:b')
  await close('host-offline:b')
  await open('host-offline:c')
  const first = await caller.incident.list({ state: 'all', limit: 2 })
  expect(first.incidents.map((i) => i.key)).toEqual(['host-offline:c', 'host-offline:a'])
  expect(first.open).toEqual({ total: 2, critical: 1, unacknowledged: 2 })
  expect(first.incidents[1]).toMatchObject({ instanceName: name, hostName: expect.any(String) })
  const second = await caller.incident.list({ state: 'all', limit: 2, cursor: first.nextCursor as string })
  expect(second.incidents).toMatchObject([
    { key: 'host-offline:b', closedBecause: 'The host answers again.' },
  ])
  expect(second.nextCursor).toBeNull()
  expect((await caller.incident.list({ severity: 'critical' })).incidents.map((i) => i.key)).toEqual([
    'host-offline:a',
  ])
  const ofInstance = await caller.incident.list({ instanceId: InstanceId.parse(instanceId) })
  expect(ofInstance.incidents.map((i) => i.key)).toEqual(['host-offline:a'])
  for (const cursor of ['x', `open_1_${'-'.repeat(36)}`, `open_1_${randomUUID()}'`])
    await expect(caller.incident.list({ cursor })).rejects.toMatchObject({
      cause: { fault: { code: 'incident.bad_cursor' } },
    })
})

test('an operator takes note of an incident once, with an audit row; a viewer cannot', async () => {
  await open('host-offline:x')
  const caller = await it.callerOf(operator.headers)
  const incidentId = (await caller.incident.list()).incidents[0]?.incidentId as IncidentId
  const viewer = await it.callerOf((await it.signedIn('viewer')).headers)
  await expect(viewer.incident.acknowledge({ incidentId })).rejects.toMatchObject({
    cause: { fault: { code: 'session.role_too_low' } },
  })
  expect((await caller.incident.show({ incidentId })).incident.acknowledgedAt).toBeNull()

  const taken = await caller.incident.acknowledge({ incidentId })
  expect(taken).toMatchObject({ first: true, incident: { acknowledgedByName: 'The operator' } })
  const other = await it.callerOf((await it.signedIn('owner')).headers)
  const again = await other.incident.acknowledge({ incidentId })
  expect(again).toEqual({ first: false, incident: taken.incident })
  expect(await audited(incidentId)).toEqual([
    { actor: expect.any(String), action: 'incident.acknowledge', outcome: 'denied', key: null },
    { actor: operator.userId, action: 'incident.acknowledge', outcome: 'allowed', key: 'host-offline:x' },
  ])
  expect((await caller.incident.list()).open).toMatchObject({ total: 1, unacknowledged: 0 })
})

test('without its audit row an incident is not acknowledged', async () => {
  await open('host-offline:k')
  const caller = await it.callerOf(operator.headers)
  const incidentId = (await caller.incident.list()).incidents[0]?.incidentId as IncidentId
  await it.database.pool.query('ALTER TABLE audit_event RENAME TO audit_event_away')
  try {
    await expect(caller.incident.acknowledge({ incidentId })).rejects.toThrow()
  } finally {
    await it.database.pool.query('ALTER TABLE audit_event_away RENAME TO audit_event')
  }
  expect((await caller.incident.show({ incidentId })).incident.acknowledgedAt).toBeNull()
})

test('what is closed or unknown cannot be acknowledged', async () => {
  await open('host-offline:k')
  const caller = await it.callerOf(operator.headers)
  const incidentId = (await caller.incident.list()).incidents[0]?.incidentId as IncidentId
  await close('host-offline:k')
  const code = (asked: Promise<unknown>) =>
    asked.then(
      () => null,
      (error: { cause: { fault: { code: string } } }) => error.cause.fault.code,
    )
  expect(await code(caller.incident.acknowledge({ incidentId }))).toBe('incident.closed')
  const unknown = IncidentId.parse(randomUUID())
  expect(await code(caller.incident.acknowledge({ incidentId: unknown }))).toBe('incident.not_found')
  expect(await code(caller.incident.show({ incidentId: unknown }))).toBe('incident.not_found')
})

test('the number of open incidents is told live: at once, at opening, acknowledging and closing', async () => {
  const caller = await it.callerOf(operator.headers)
  const seen: string[] = []
  const next = ['opening', 'acknowledging', 'closing']
  for await (const { open: now } of await caller.incident.watch()) {
    const word = `${now.total} ${now.unacknowledged}`
    // an event may come again with the same numbers: something moved, not necessarily a number
    if (seen.at(-1) === word) continue
    seen.push(word)
    const step = next.shift()
    if (step === 'opening') await open('host-offline:live')
    else if (step === 'acknowledging') {
      const { incidents } = await caller.incident.list()
      await caller.incident.acknowledge({ incidentId: incidents[0]?.incidentId as IncidentId })
    } else if (step === 'closing') await close('host-offline:live')
    else break
  }
  expect(seen).toEqual(['0 0', '1 1', '1 0', '0 0'])
})
