import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../testing/control-database'
import { closeIncidents, listIncidents, openIncident } from './incident'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

const report = {
  key: 'disk-low:h:/',
  severity: 'warning' as const,
  title: 'almost full',
  detail: '4 % are free.',
}

test('one cause is one open incident, however many report it at once', async () => {
  const opened = await Promise.all(Array.from({ length: 20 }, () => openIncident(db.pool, report)))
  expect(opened.filter(Boolean)).toHaveLength(1)
  expect(await listIncidents(db.pool)).toHaveLength(1)
})

test('an open incident takes newer words; a closed one stays as it was and the next one is new', async () => {
  expect(await openIncident(db.pool, { ...report, detail: '3 % are free.' })).toBe(false)
  expect(await listIncidents(db.pool)).toMatchObject([{ detail: '3 % are free.' }])
  expect(await closeIncidents(db.pool, [report.key, 'nothing:open'])).toEqual([report.key])
  expect(await closeIncidents(db.pool, [report.key])).toEqual([])
  expect(await openIncident(db.pool, report)).toBe(true)
  expect(await listIncidents(db.pool, { includeClosed: true })).toMatchObject([
    { detail: '4 % are free.', closedAt: null },
    { detail: '3 % are free.' },
  ])
})
