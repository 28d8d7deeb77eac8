// A control database that is older than the clusters in it: nothing is done by it until a person has decided.
import { randomUUID } from 'node:crypto'
import type { InstanceObserved } from '@floe/agent-contract'
import { acceptRestoredRecords, inTransaction, listIncidents, listRestoredRecords } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { FaultError, InstanceId, InstanceName, Lsn, type RestoredAccepted } from '@floe/domain'
import { patienceWith } from '@floe/operations'
import { submitOperation } from '@floe/operations/submit'
import { waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { actor, controllersFixture } from './testing/controllers-fixture'
import { type FakeAgent, replication } from './testing/fake-agent'

let fixture: Awaited<ReturnType<typeof controllersFixture>>
beforeEach(async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
})
afterEach(() => fixture.remove())

const query = async <T = Record<string, unknown>>(sql: string, values: unknown[] = []) =>
  (await fixture.db.pool.query(sql, values)).rows as T[]
const ancestors = [1, 2].map((timeline) => ({ timeline, end: Lsn.parse(`0/${timeline}000`) }))

function show(on: FakeAgent, instanceId: string, name: string, more: Partial<InstanceObserved>) {
  on.show(InstanceId.parse(instanceId), name, 'running', 4_000)
  const shown = on.instances.get(instanceId) as InstanceObserved
  on.instances.set(instanceId, { ...shown, ...more })
  on.changed()
}

/**
 * The database says that c1 is the primary on timeline 1, that c2 is to be fenced, and that c1 is to be stopped: all of before a
 * switchover to c2, which has begun timeline 3. "alone" is another cluster, on the host of c1.
 */
async function restored() {
  const second = await fixture.addHost()
  const one = await insertTestInstance(fixture.db, { name: 'c1', hostId: fixture.host.hostId })
  const two = await insertTestInstance(fixture.db, { name: 'c2', hostId: second.hostId })
  const alone = await insertTestInstance(fixture.db, { name: 'alone', hostId: fixture.host.hostId })
  const [{ clusterId } = { clusterId: '' }] = await query<{ clusterId: string }>(
    'SELECT "clusterId" FROM instance WHERE id = $1',
    [one.instanceId],
  )
  // its timeline alone would let the order be carried out
  await query(
    `UPDATE instance SET "clusterId" = $2, "memberRole" = 'fenced', "fenceOrderedAt" = now(), "fenceTimeline" = 9 WHERE id = $1`,
    [two.instanceId, clusterId],
  )
  await query(`UPDATE cluster SET holdings = $1`, [
    JSON.stringify({ timeline: { timeline: 1, ancestors: [] }, begun: [{ timeline: 1, begin: '0/0' }] }),
  ])
  const { operationId } = await stop(one.instanceId)
  const primaryKnown = { instanceId: InstanceId.parse(two.instanceId), timeline: 3, at: 1 }
  const now = replication({ timeline: 3, ancestors })
  show(fixture.host, one.instanceId, 'c1', { role: 'standby', replication: now, primaryKnown })
  show(second, two.instanceId, 'c2', { role: 'primary', timeline: 3, replication: now, primaryKnown })
  show(fixture.host, alone.instanceId, 'alone', { role: 'primary', replication: replication() })
  return { second, one, two, alone, clusterId, operationId }
}

const stop = (instanceId: string) =>
  submitOperation(fixture.db, {
    kind: 'stop-instance',
    input: { instanceId: InstanceId.parse(instanceId), mode: 'fast' },
    actor,
  })
const refusal = (asked: Promise<unknown>) =>
  asked.then(
    () => null,
    (error: unknown) => (error instanceof FaultError ? error.fault : error),
  )
const incidents = async () =>
  (await listIncidents(fixture.db.pool)).filter(
    (i) => i.closedAt === null && i.key.startsWith('control-database-restored:'),
  )
const accept = (as: RestoredAccepted) =>
  inTransaction(fixture.db.as.web.pool, async (tx) => {
    const records = await listRestoredRecords(tx)
    await acceptRestoredRecords(
      tx,
      records.map((r) => r.recordId),
      as,
      actor,
    )
  })
const ended = (operationId: string) =>
  waitUntil('the operation has ended', async () => {
    const [o] = await query<{ state: string; fault: { code: string } | null }>(
      'SELECT state, fault FROM operation WHERE id = $1 AND "endedAt" IS NOT NULL',
      [operationId],
    )
    return o
  })
/** Whatever was asked of the members, by kind of task. */
const asked = (of: FakeAgent, except?: string) =>
  [...of.tasks.values()]
    .map((t) => t.input.task)
    .filter((t) => t.instanceId !== except)
    .map((t) => t.kind)

test('nothing is done by an older record; a person takes over what the members report, and it goes on', async () => {
  const { second, one, two, alone, clusterId, operationId } = await restored()
  fixture.start()
  const [incident] = await waitUntil('the incident is open', async () => {
    const open = await incidents()
    return open.length > 0 ? open : null
  })
  expect(incident).toMatchObject({ severity: 'critical', key: `control-database-restored:${clusterId}` })
  expect(incident?.title).toContain('cluster "c1"')
  expect(incident?.detail).toMatch(
    /host "host-.*"c2" is the primary on timeline 3; recorded is "c1" on timeline 1/,
  )
  expect(await refusal(stop(two.instanceId))).toMatchObject({ code: 'control_database.read_only' })
  // another cluster is not in doubt, and shows that this controller works
  expect((await ended((await stop(alone.instanceId)).operationId))?.state).toBe('succeeded')
  expect(asked(second)).toEqual([])
  expect(asked(fixture.host, alone.instanceId)).toEqual([])
  expect(await query('SELECT state FROM operation WHERE id = $1', [operationId])).toEqual([
    { state: 'queued' },
  ])

  await accept('reported')
  await waitUntil('the incident is closed', async () => (await incidents()).length === 0)
  expect(await ended(operationId)).toMatchObject({
    state: 'failed',
    fault: { code: 'operation.not_continued' },
  })
  expect(
    await query(
      `SELECT i.name, i."memberRole", i."fenceOrderedAt" AS fence, c."primaryInstanceId" = i.id AS "primary",
              c.holdings->'timeline'->>'timeline' AS timeline
         FROM instance i JOIN cluster c ON c.id = i."clusterId" WHERE c.id = $1 ORDER BY 1`,
      [clusterId],
    ),
  ).toEqual([
    { name: 'c1', memberRole: 'standby', fence: null, primary: false, timeline: '3' },
    { name: 'c2', memberRole: 'primary', fence: null, primary: true, timeline: '3' },
  ])
  expect((await ended((await stop(one.instanceId)).operationId))?.state).toBe('succeeded')
  expect(await listRestoredRecords(fixture.db.pool)).toEqual([])
})

test('nothing is done before hosts that take their time to answer have been heard', async () => {
  const { second, alone, operationId } = await restored()
  // longer than one that does not answer is waited for
  for (const double of [fixture.host, second]) double.delayMs = 2_000
  fixture.start(undefined, undefined, {
    checksHosts: false,
    patience: patienceWith({ questionMs: 15_000 }),
  })
  await waitUntil('it is in doubt', async () => (await listRestoredRecords(fixture.db.pool)).length > 0)
  for (const double of [fixture.host, second]) double.delayMs = 0
  expect((await ended((await stop(alone.instanceId)).operationId))?.state).toBe('succeeded')
  expect(await query('SELECT state FROM operation WHERE id = $1', [operationId])).toEqual([
    { state: 'queued' },
  ])
  expect([...asked(fixture.host, alone.instanceId), ...asked(second)]).toEqual([])
})

test('what is not proven is not taken over; a person can keep what is recorded, once for each claim', async () => {
  const { second, two, clusterId } = await restored()
  // the second host is gone: whether there is a newer primary still is not known
  await second.close()
  fixture.start()
  const doubts = () =>
    waitUntil('it is in doubt', async () => {
      const [record] = (await listRestoredRecords(fixture.db.pool)).filter((r) => r.acceptedAs === null)
      return record
    })
  await doubts()
  await accept('reported')
  await waitUntil('a person has to decide again', async () => {
    const rows = await query<{ outcome: string | null; acceptedAs: string | null; settled: boolean }>(
      `SELECT outcome, "acceptedAs", "settledAt" IS NOT NULL AS settled FROM restored_record
        WHERE "clusterId" = $1 ORDER BY "settledAt"`,
      [clusterId],
    )
    const [decided, again] = rows
    return (
      rows.length === 2 &&
      decided?.settled &&
      decided.outcome?.includes('does not answer') &&
      !again?.settled &&
      again?.acceptedAs === null
    )
  })
  expect(
    await query('SELECT "fenceOrderedAt" IS NOT NULL AS o FROM instance WHERE id = $1', [two.instanceId]),
  ).toEqual([{ o: true }])
  await accept('recorded')
  await waitUntil('it is settled', async () => (await listRestoredRecords(fixture.db.pool)).length === 0)
  expect(
    await query(
      'SELECT i.name FROM cluster c JOIN instance i ON i.id = c."primaryInstanceId" WHERE c.id = $1',
      [clusterId],
    ),
  ).toEqual([{ name: 'c1' }])
  // the same claim by the host that comes back is decided on; a newer one is not
  await fixture.reopen(second)
  await waitUntil('the host answers', async () => {
    const [row] = await query<{ seen: boolean }>(
      'SELECT "observedAt" IS NOT NULL AS seen FROM host WHERE id = $1',
      [second.hostId],
    )
    return row?.seen
  })
  expect(await listRestoredRecords(fixture.db.pool)).toEqual([])
  const claim = second.instances.get(two.instanceId) as InstanceObserved
  second.instances.set(two.instanceId, {
    ...claim,
    primaryKnown: { instanceId: InstanceId.parse(two.instanceId), timeline: 4, at: 1 },
  })
  second.changed()
  expect((await doubts())?.evidence).toMatchObject({ timeline: 4, hostId: second.hostId })
})

test('a host can put only clusters in doubt that have a member on it', async () => {
  const { second, one, alone } = await restored()
  for (const [of, instance] of [...fixture.host.instances, ...second.instances])
    for (const double of [fixture.host, second])
      if (double.instances.has(of)) double.instances.set(of, { ...instance, primaryKnown: null })
  const lie = { instanceId: InstanceId.parse(randomUUID()), timeline: 2 ** 31 - 1, at: 1 }
  for (const { instanceId, name } of [one, alone])
    show(second, instanceId, name, { role: 'primary', primaryKnown: lie })
  fixture.start()
  // what it may put in doubt comes in the same report, after the others
  const own = await insertTestInstance(fixture.db, { name: 'own', hostId: second.hostId })
  await query(
    `UPDATE cluster SET holdings = '{"timeline": {"timeline": 1, "ancestors": []}}' WHERE name = 'own'`,
  )
  show(second, own.instanceId, 'own', { role: 'primary', primaryKnown: lie })
  const found = await waitUntil('its own cluster is in doubt', async () => {
    const records = await listRestoredRecords(fixture.db.pool)
    return records.length > 0 ? records : null
  })
  expect(found.map((r) => r.clusterName)).toEqual(['own'])
  expect((await ended((await stop(alone.instanceId)).operationId))?.state).toBe('succeeded')
})

test('after a restore all of it is read-only and one incident, which names the clusters that are older', async () => {
  const { alone, second, operationId } = await restored()
  await query(
    `INSERT INTO restored_record (id, evidence) VALUES ($1, '{"kind": "restored", "backupAt": 1800000000000}')`,
    [randomUUID()],
  )
  fixture.start()
  const [incident, ...others] = await waitUntil('the incident names the cluster', async () => {
    const open = await incidents()
    return open[0]?.detail?.includes('Cluster "c1"') ? open : null
  })
  expect(others).toEqual([])
  expect(incident).toMatchObject({ key: 'control-database-restored:all' })
  expect(incident?.detail).toContain('2027-01-15')
  expect(await refusal(stop(alone.instanceId))).toMatchObject({
    code: 'control_database.read_only',
    message: expect.stringContaining('restored'),
  })
  const create = submitOperation(fixture.db, {
    kind: 'create-instance',
    input: {
      instanceId: InstanceId.parse(randomUUID()),
      name: InstanceName.parse('new'),
      settings: {},
      ownerPasswordVerifier: null,
    },
    actor,
  })
  expect(await refusal(create)).toMatchObject({ code: 'control_database.read_only' })
  expect([...asked(fixture.host), ...asked(second)]).toEqual([])
  await accept('reported')
  await waitUntil('all is settled', async () => (await listRestoredRecords(fixture.db.pool)).length === 0)
  expect(await incidents()).toEqual([])
  expect((await ended(operationId))?.fault?.code).toBe('operation.not_continued')
  expect((await ended((await stop(alone.instanceId)).operationId))?.state).toBe('succeeded')
})
