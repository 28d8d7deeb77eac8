import type { InstanceView } from '@floe/db'
import { type ClusterObserved, InstanceId, operationRecords } from '@floe/domain'
import { expect, test } from 'vitest'
import { PATIENCE } from '../patience'
import type { Guarded, StepContext } from '../step'
import { reindexDatabase } from './reindex-database'

const id = InstanceId.parse('0d8f2a9e-6c51-4a30-9f4e-1d2c3b4a5f60')
const asked = (memberRole: 'primary' | 'standby') =>
  ({
    input: { instanceId: id, database: 'shop' },
    instance: { name: 'demo', cluster: { memberRole } } as InstanceView,
    readCluster: async () =>
      ({ primaryInstanceId: 'other', members: [{ instanceId: 'other', name: 'other' }] }) as never,
  }) as unknown as Guarded<'reindex-database'>

test('it is ordered for a primary, and its step names the database', async () => {
  await reindexDatabase.guard?.(asked('primary'))
  await expect(reindexDatabase.guard?.(asked('standby'))).rejects.toMatchObject({
    fault: { message: 'instance "demo" is a standby', hint: 'Name the primary: "other".' },
  })
  expect(reindexDatabase.plan({ instanceId: id, database: 'shop' }, { state: 'running' })).toEqual([
    { name: 'reindex', title: 'Rebuild the indexes of database "shop"' },
  ])
})

test('a host that has been silent for 20 s fails it: an open operation would keep the cluster from a failover', async () => {
  const member = {
    instanceId: id,
    name: 'demo',
    hostId: 'h',
    hostName: 'db1',
    ageMs: 21_000,
    hostState: 'stale',
  }
  const run = (silentMs: number) =>
    reindexDatabase.steps.reindex.run({
      operationId: 'o',
      input: { instanceId: id, database: 'shop' },
      step: { name: 'reindex', attempt: 1, taskLogSeq: 0, startedAt: new Date(0) },
      cancelAskedAt: null,
      now: new Date(100_000),
      atWorkSince: new Date(0),
      patience: PATIENCE,
      results: {},
      readCluster: async () =>
        ({ name: 'demo', members: [{ ...member, ageMs: silentMs }] }) as unknown as ClusterObserved,
      agentOf: () => ({
        checkTask: () => Promise.reject(new TypeError('fetch failed')),
      }),
    } as unknown as StepContext<'reindex-database'>)
  expect(await run(19_000)).toMatchObject({ word: 'wait' })
  expect(await run(21_000)).toMatchObject({ word: 'fail', fault: { code: 'agent.unreachable' } })
})

test('what it has done is told by count and size, and that there was nothing to do', () => {
  const { done } = operationRecords['reindex-database'].order.command
  const result = { bytesBefore: 4_194_304, bytesAfter: 1_048_576, skipped: [] }
  expect(done({ ...result, rebuilt: 1 })).toMatch(/^has 1 rebuilt index: .+ before, .+ now$/)
  expect(done({ ...result, rebuilt: 0 })).toBe('has no index in this database that can be rebuilt')
})
