import { randomUUID } from 'node:crypto'
import { waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { listenForNotifications, notificationChannels } from './notifications'
import { openIncident } from './queries/incident'
import { createTestDatabase, insertTestInstance, type TestDatabase } from './testing/control-database'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

test('every change that a page shows is notified with its id, and a lost connection is made again', async () => {
  const heard: string[] = []
  let connected = 0
  const listening = listenForNotifications({
    connectionString: db.connectionString,
    channels: notificationChannels,
    onNotification: (channel, id) => heard.push(`${channel} ${id}`),
    onConnected: () => {
      connected++
    },
  })
  await waitUntil('it listens', () => connected === 1)
  const { instanceId, hostId } = await insertTestInstance(db)
  const operationId = randomUUID()
  await db.pool.query(
    `INSERT INTO operation (id, kind, input, "instanceId", actor, "actorName") VALUES ($1, 'start-instance', '{}', $2, 't', 't')`,
    [operationId, instanceId],
  )
  await openIncident(db.pool, { key: 'host-offline:k', severity: 'warning', title: 't' })
  const wanted = [
    `host ${hostId}`,
    `instance ${instanceId}`,
    `operation ${operationId}`,
    `operation_queued ${operationId}`,
  ]
  await waitUntil(
    'all are heard',
    () => wanted.every((w) => heard.includes(w)) && heard.some((h) => h.startsWith('incident')),
  )

  const admin = new pg.Client({ connectionString: inject('engineConnectionString') })
  await admin.connect()
  await admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'floe notifications' AND datname = $1`,
    [new URL(db.connectionString).pathname.slice(1)],
  )
  await admin.end()
  await waitUntil('it listens again', () => connected === 2)
  heard.length = 0
  const change = (sql: string, id: string) => db.pool.query(sql, [id])
  await change(`UPDATE operation SET state = 'running' WHERE id = $1`, operationId)
  await waitUntil('the move is heard', () => heard.includes(`operation ${operationId}`))
  // an observation that changes nothing wakes nobody
  heard.length = 0
  await change(`UPDATE instance SET "observedAt" = now() WHERE id = $1`, instanceId)
  await change(`UPDATE instance SET state = 'running' WHERE id = $1`, instanceId)
  await waitUntil('the move is heard', () => heard.includes(`instance ${instanceId}`))
  expect(heard.filter((h) => h.startsWith('instance'))).toHaveLength(1)
  await listening.close()
})
