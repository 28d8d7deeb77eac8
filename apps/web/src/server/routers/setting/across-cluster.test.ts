import { randomUUID } from 'node:crypto'
import { insertSettingChanges, insertSettingRevision, inTransaction } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { ClusterId, InstanceId, type OperationId } from '@floe/domain'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

/** A cluster of a primary and a standby that streams, as agents would have told it. */
async function pair(name: string) {
  const { pool } = it.database
  const primary = await insertTestInstance(it.database, { name })
  const standby = await insertTestInstance(it.database, { name: `${name}-2`, hostId: primary.hostId })
  const { rows } = await pool.query<{ id: string }>('SELECT "clusterId" AS id FROM instance WHERE id = $1', [
    primary.instanceId,
  ])
  const clusterId = rows[0]?.id as ClusterId
  await pool.query(`UPDATE instance SET "clusterId" = $2, "memberRole" = 'standby' WHERE id = $1`, [
    standby.instanceId,
    clusterId,
  ])
  const seen = {
    pid: 1,
    clientAddress: null,
    sentLsn: null,
    writtenLsn: null,
    flushedLsn: null,
    replayedLsn: null,
    writeLagMs: null,
    flushLagMs: null,
    replayLagMs: null,
    syncState: 'async',
  }
  const replication = {
    at: 1,
    endLsn: null,
    replayedLsn: null,
    timeline: 1,
    replayPaused: false,
    replayDelayMs: null,
    slots: [],
    receiver: null,
    synchronousStandbyNames: '',
    synchronousCommit: 'on',
    fullPageWrites: true,
    waitingCommits: 0,
  }
  const told = async (instanceId: string, standbys: object[]) =>
    pool.query(
      `UPDATE instance SET state = 'running', observed = $2, "observedAt" = clock_timestamp() WHERE id = $1`,
      [instanceId, JSON.stringify({ replication: { ...replication, standbys } })],
    )
  await told(primary.instanceId, [{ ...seen, applicationName: `${name}-2`, state: 'streaming' }])
  await told(standby.instanceId, [])
  await pool.query('UPDATE host SET "observedAt" = clock_timestamp() WHERE id = $1', [primary.hostId])
  return {
    clusterId,
    primary: InstanceId.parse(primary.instanceId),
    standby: InstanceId.parse(standby.instanceId),
  }
}

/** The operation as if the controller had carried it out: each member then holds this. */
async function done(operationId: OperationId, managed: Record<string, Record<string, string>>) {
  await inTransaction(it.database.pool, async (tx) => {
    for (const [instanceId, own] of Object.entries(managed)) {
      await insertSettingChanges(
        tx,
        operationId,
        Object.entries(own).map(([name, newValue]) => ({
          name,
          oldValue: null,
          newValue,
          pendingRestart: false,
        })),
        { instanceId },
      )
      await insertSettingRevision(tx, operationId, { instanceId, managed: own, before: {} })
    }
  })
  await it.database.pool.query(`UPDATE operation SET state = 'succeeded', "endedAt" = now() WHERE id = $1`, [
    operationId,
  ])
}

test('a change is one operation on all members, kept in each history, and the cluster goes back as a whole', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const { clusterId, primary, standby } = await pair('shop')
  const set = (value: string, reason?: string) =>
    caller.setting.set({ scope: { clusterId }, changes: [{ name: 'max_connections', value }], reason })

  const first = await set('200', 'more clients')
  const { operation } = await caller.operation.show({ operationId: first.operationId })
  expect(operation).toMatchObject({
    kind: 'change-cluster-settings',
    input: {
      members: [
        { instanceId: primary, changes: [{ name: 'max_connections', value: '200' }] },
        { instanceId: standby, changes: [{ name: 'max_connections', value: '200' }] },
      ],
      restart: true,
    },
  })
  // any other change on the cluster is answered with this one
  await expect(
    caller.setting.set({ scope: { instanceId: standby }, changes: [{ name: 'work_mem', value: '8MB' }] }),
  ).rejects.toMatchObject({ cause: { blockingOperationId: first.operationId } })
  await done(first.operationId, {
    [primary]: { max_connections: '200' },
    [standby]: { max_connections: '200' },
  })

  // a change of one member is a revision of the cluster too
  const alone = await caller.setting.set({
    scope: { instanceId: standby },
    changes: [{ name: 'work_mem', value: '8MB' }],
  })
  await done(alone.operationId, { [standby]: { max_connections: '200', work_mem: '8MB' } })
  const second = await set('300')
  await done(second.operationId, {
    [primary]: { max_connections: '300' },
    [standby]: { max_connections: '300', work_mem: '8MB' },
  })

  const { changes } = await caller.setting.history({ scope: { clusterId }, name: 'max_connections' })
  expect(
    changes
      .map((c) => [c.instanceName, c.newValue, c.reason])
      .slice(-2)
      .sort(),
  ).toEqual([
    ['shop', '200', 'more clients'],
    ['shop-2', '200', 'more clients'],
  ])

  const { revisions } = await caller.setting.revisions({ scope: { clusterId } })
  expect(revisions.map((s) => [s.reason, s.changed])).toEqual([
    [null, ['shop', 'shop-2']],
    [null, ['shop-2']],
    ['more clients', ['shop', 'shop-2']],
    ['as it was found', ['shop']],
  ])
  expect(revisions[2]?.members.map((m) => [m.name, m.changes])).toEqual([
    ['shop', [{ name: 'max_connections', value: '200' }]],
    [
      'shop-2',
      [
        { name: 'max_connections', value: '200' },
        { name: 'work_mem', value: null },
      ],
    ],
  ])
  const back = {
    scope: { clusterId },
    revisionId: revisions[2]?.revisionId as string,
    idempotencyKey: 'one-cluster-roll-back',
  }
  const { operationId } = await caller.setting.rollBack(back)
  expect((await caller.operation.show({ operationId })).operation.input).toMatchObject({
    // the primary is asked for what it has already: the order is decided over all members
    members: [
      {
        instanceId: primary,
        changes: [
          { name: 'max_connections', value: '200' },
          { name: 'work_mem', value: null },
        ],
      },
      {
        instanceId: standby,
        changes: [
          { name: 'max_connections', value: '200' },
          { name: 'work_mem', value: null },
        ],
      },
    ],
    reason: expect.stringMatching(/^rolled back to the revision of \d{4}-/),
  })
  await done(operationId, { [primary]: { max_connections: '200' }, [standby]: { max_connections: '200' } })
  expect(await caller.setting.rollBack(back)).toEqual({ operationId })
  // the key answers for this revision of this cluster, and for nothing else
  for (const reused of [
    { ...back, revisionId: revisions[1]?.revisionId as string },
    { ...back, scope: { clusterId: ClusterId.parse(randomUUID()) } },
  ])
    await expect(caller.setting.rollBack(reused)).rejects.toMatchObject({
      cause: { fault: { code: 'operation.key_reused', detail: expect.stringContaining(operationId) } },
    })
  await expect(caller.setting.rollBack({ ...back, idempotencyKey: undefined })).rejects.toThrow(
    'as they were in that revision',
  )
  await expect(caller.setting.rollBack({ scope: { clusterId }, revisionId: '999999' })).rejects.toThrow(
    'no revision 999999',
  )
  // before the first change
  const found = (await caller.setting.revisions({ scope: { clusterId } })).revisions.at(-1)
  expect(found?.members.map((m) => m.changes)).toEqual([
    [{ name: 'max_connections', value: null }],
    [{ name: 'max_connections', value: null }],
  ])
})

test('one member alone, a member that is away and a viewer are refused with the reason', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const { clusterId, standby } = await pair('desk')
  const changes = [{ name: 'max_wal_senders', value: '20' }]
  await expect(caller.setting.set({ scope: { instanceId: standby }, changes })).rejects.toMatchObject({
    cause: { fault: { code: 'setting.of_cluster' } },
  })
  await it.database.pool.query(`UPDATE instance SET observed = observed || $2 WHERE id = $1`, [
    standby,
    JSON.stringify({
      settingDrift: [{ name: 'max_connections', file: 'floe.conf', line: 1, was: '9', is: '8' }],
    }),
  ])
  await expect(caller.setting.adopt({ instanceId: standby })).rejects.toThrow('changed for the whole cluster')

  await it.database.pool.query(`UPDATE instance SET state = 'stopped' WHERE id = $1`, [standby])
  await expect(caller.setting.set({ scope: { clusterId }, changes })).rejects.toThrow(
    'member "desk-2" is stopped',
  )
  await it.database.pool.query(
    `UPDATE instance SET state = 'running', "observedAt" = clock_timestamp() - interval '1 hour' WHERE id = $1`,
    [standby],
  )
  await expect(caller.setting.set({ scope: { clusterId }, changes })).rejects.toThrow('does not answer')
  await expect(
    caller.setting.set({ scope: { clusterId }, changes: [{ name: 'listen_addresses', value: '*' }] }),
  ).rejects.toThrow('not changed for a whole cluster')
  await expect(
    caller.setting.set({ scope: { clusterId: randomUUID() as ClusterId }, changes }),
  ).rejects.toThrow('does not exist')
  const viewer = await it.callerOf((await it.signedIn('viewer')).headers)
  await expect(viewer.setting.set({ scope: { clusterId }, changes })).rejects.toThrow()
  expect((await viewer.setting.history({ scope: { clusterId } })).changes).toEqual([])
})
