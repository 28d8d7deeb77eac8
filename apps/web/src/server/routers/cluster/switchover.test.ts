import { randomUUID } from 'node:crypto'
import { insertTestInstance } from '@floe/db/testing'
import { ClusterId } from '@floe/domain'
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
  const begun = async (kind: string) => {
    const [operationId, idempotencyKey] = [randomUUID(), randomUUID()]
    await it.database.pool.query(
      `INSERT INTO operation (id, kind, state, input, "instanceId", actor, "actorName", "idempotencyKey", "endedAt")
       VALUES ($1, $2, 'succeeded', '{}', $3, $4, 't', $5, now())`,
      [operationId, kind, instanceId, me, idempotencyKey],
    )
    return { operationId, idempotencyKey }
  }
  const over = await begun('switchover-cluster')
  const { idempotencyKey } = over
  expect(await caller.cluster.switchover({ clusterId, idempotencyKey })).toEqual({
    operationId: over.operationId,
  })
  const fail = await begun('failover-cluster')
  expect(
    await caller.cluster.failover({
      clusterId,
      idempotencyKey: fail.idempotencyKey,
      acceptLoss: null,
      unreachableHost: null,
    }),
  ).toEqual({ operationId: fail.operationId })
  await expect(caller.cluster.switchover({ clusterId, idempotencyKey: randomUUID() })).rejects.toThrow(
    'has no such standby',
  )
})
