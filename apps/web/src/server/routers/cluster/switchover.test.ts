import { randomUUID } from 'node:crypto'
import { insertTestInstance } from '@floe/db/testing'
import { ClusterId, InstanceId } from '@floe/domain'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
let headers: Record<string, string>
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  headers = await it.token()
})
afterAll(() => it.close())

test('a switchover or failover that is asked for again by its key is answered, though the candidate is the primary now', async () => {
  const { instanceId } = await insertTestInstance(it.database)
  const { rows } = await it.database.pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [
    instanceId,
  ])
  const clusterId = ClusterId.parse(rows[0].clusterId)
  const caller = await it.callerOf(headers)
  const me = (await caller.account.me()).id
  const begun = async (kind: string, more: object) => {
    const [operationId, idempotencyKey] = [randomUUID(), randomUUID()]
    await it.database.pool.query(
      `INSERT INTO operation (id, kind, state, input, "instanceId", actor, "actorName", "idempotencyKey", "endedAt")
       VALUES ($1, $2, 'succeeded', $6, $3, $4, 't', $5, now())`,
      [operationId, kind, instanceId, me, idempotencyKey, JSON.stringify({ clusterId, instanceId, ...more })],
    )
    return { operationId, idempotencyKey }
  }
  const over = await begun('switchover-cluster', {})
  const { idempotencyKey } = over
  expect(await caller.cluster.switchover({ clusterId, idempotencyKey })).toEqual({
    operationId: over.operationId,
  })
  const fail = await begun('failover-cluster', { acceptLoss: null, unreachableHost: null })
  expect(
    await caller.cluster.failover({
      clusterId,
      idempotencyKey: fail.idempotencyKey,
      acceptLoss: null,
      unreachableHost: null,
    }),
  ).toEqual({ operationId: fail.operationId })
  // a key answers for what it began, and for no other cluster, standby or accepted loss
  const [other, otherCluster] = [InstanceId.parse(randomUUID()), ClusterId.parse(randomUUID())]
  const lossy = { clusterId, acceptLoss: 'unknown', unreachableHost: null } as const
  for (const [reused, first] of [
    [() => caller.cluster.switchover({ clusterId: otherCluster, idempotencyKey }), over],
    [() => caller.cluster.switchover({ clusterId, instanceId: other, idempotencyKey }), over],
    [() => caller.cluster.failover({ ...lossy, acceptLoss: null, idempotencyKey }), over],
    [() => caller.cluster.failover({ ...lossy, idempotencyKey: fail.idempotencyKey }), fail],
  ] as const)
    await expect(reused()).rejects.toMatchObject({
      cause: {
        fault: { code: 'operation.key_reused', detail: expect.stringContaining(first.operationId) },
      },
    })
  await expect(caller.cluster.switchover({ clusterId, idempotencyKey: randomUUID() })).rejects.toThrow(
    'has no such standby',
  )
})
