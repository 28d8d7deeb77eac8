import { randomUUID } from 'node:crypto'
import { type IncidentReport, incidentKey } from '@floe/domain'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { inTransaction } from '../database'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '../testing/control-database'
import {
  acknowledgeIncident,
  closeIncidents,
  closeIncidentsOfInstance,
  countOpenIncidents,
  type IncidentView,
  listIncidents,
  openIncident,
  showIncident,
} from './incident'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
beforeEach(() => db.pool.query('DELETE FROM incident'))
afterAll(() => db.drop())

const report: IncidentReport = {
  key: incidentKey('disk-low', 'h', '/'),
  severity: 'warning',
  title: 'almost full',
  detail: '4 % are free.',
}
const ada = { id: 'ada', name: 'Ada' }
const acknowledge = (incidentId: string, actor = ada) =>
  inTransaction(db.pool, (tx) => acknowledgeIncident(tx, incidentId, actor))
const only = async () => (await listIncidents(db.pool, { state: 'all' }))[0] as IncidentView

test('one cause is one open incident, however many report it at once', async () => {
  const opened = await Promise.all(Array.from({ length: 20 }, () => openIncident(db.pool, report)))
  expect(opened.filter(Boolean)).toHaveLength(1)
  expect(await listIncidents(db.pool)).toHaveLength(1)
})

test('an open incident takes newer words; a closed one stays as it was and the next one is new', async () => {
  await openIncident(db.pool, report)
  expect(await openIncident(db.pool, { ...report, detail: '3 % are free.' })).toBe(false)
  expect(await listIncidents(db.pool)).toMatchObject([{ detail: '3 % are free.' }])
  expect(await closeIncidents(db.pool, [report.key, 'nothing:open'], 'It is over.')).toEqual([report.key])
  expect(await closeIncidents(db.pool, [report.key], 'It is over again.')).toEqual([])
  expect(await openIncident(db.pool, report)).toBe(true)
  expect(await listIncidents(db.pool, { state: 'all' })).toMatchObject([
    { detail: '4 % are free.', closedAt: null, closedBecause: null },
    { detail: '3 % are free.', closedBecause: 'It is over.' },
  ])
})

test('page by page every incident comes once: open ones first, each newest first, also where many began at once', async () => {
  for (let n = 0; n < 23; n++) await openIncident(db.pool, { ...report, key: `host-offline:${n}` })
  await db.pool.query(`UPDATE incident SET "openedAt" = date_trunc('second', now())`)
  await closeIncidents(
    db.pool,
    Array.from({ length: 10 }, (_, n) => `host-offline:${2 * n}`),
    'Over.',
  )
  const seen: IncidentView[] = []
  for (;;) {
    const last = seen.at(-1)
    const page = await listIncidents(db.pool, {
      state: 'all',
      limit: 4,
      after: last && { open: !last.closedAt, openedAt: last.openedAt, incidentId: last.incidentId },
    })
    seen.push(...page)
    if (page.length < 4) break
  }
  expect(new Set(seen.map((i) => i.key)).size).toBe(23)
  expect(seen).toHaveLength(23)
  expect(seen.map((i) => i.closedAt === null)).toEqual([...Array(13).fill(true), ...Array(10).fill(false)])
  expect(await listIncidents(db.pool, { state: 'closed' })).toHaveLength(10)
  expect(await listIncidents(db.pool, { severity: 'critical', state: 'all' })).toEqual([])
})

test('who acknowledges first stays; newer words keep it, the next incident of the cause begins anew', async () => {
  await openIncident(db.pool, report)
  const { incidentId } = await only()
  expect(await countOpenIncidents(db.pool)).toEqual({ total: 1, critical: 0, unacknowledged: 1 })
  const both = await Promise.all([acknowledge(incidentId), acknowledge(incidentId, { id: 'b', name: 'Bo' })])
  expect(both.map((a) => a.first).sort()).toEqual([false, true])
  const first = (await showIncident(db.pool, incidentId))?.acknowledgedByName
  await openIncident(db.pool, { ...report, severity: 'critical' })
  expect(await only()).toMatchObject({ severity: 'critical', acknowledgedByName: first })
  expect(await countOpenIncidents(db.pool)).toEqual({ total: 1, critical: 1, unacknowledged: 0 })
  await closeIncidents(db.pool, [report.key], 'Over.')
  await expect(acknowledge(incidentId)).rejects.toMatchObject({ fault: { code: 'incident.closed' } })
  await expect(acknowledge(randomUUID())).rejects.toMatchObject({ fault: { code: 'incident.not_found' } })
  await openIncident(db.pool, report)
  expect(await listIncidents(db.pool)).toMatchObject([{ acknowledgedAt: null }])
})

test('an incident names where it is as long as that is there', async () => {
  const { instanceId, hostId, name } = await insertTestInstance(db)
  await openIncident(db.pool, { ...report, instanceId, hostId })
  expect(await only()).toMatchObject({ instanceName: name, hostName: expect.stringContaining('host-') })
  await db.pool.query('UPDATE instance SET "deletedAt" = now() WHERE id = $1', [instanceId])
  await closeIncidentsOfInstance(db.pool, instanceId)
  expect(await only()).toMatchObject({
    instanceId,
    instanceName: null,
    closedBecause: 'The instance was deleted.',
  })
})

test('messages of one moment go out in the order in which they were written', async () => {
  const { rows } = await db.pool.query(
    `INSERT INTO webhook (id, url, actor, "actorName") VALUES ($1, 'https://example.net/', 'ada', 'Ada') RETURNING id`,
    [randomUUID()],
  )
  const webhookId = rows[0].id
  const keys = Array.from({ length: 20 }, (_, i) => incidentKey('host-offline', `${i}`))
  await inTransaction(db.pool, async (tx) => {
    for (const key of keys) await openIncident(tx, { key, severity: 'warning', title: key })
  })
  const { rows: told } = await db.pool.query(
    `SELECT body #>> '{data,title}' AS title FROM webhook_delivery WHERE "webhookId" = $1 ORDER BY "createdAt", id`,
    [webhookId],
  )
  expect(told.map((t) => t.title)).toEqual(keys)
})
