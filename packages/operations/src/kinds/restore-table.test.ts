import type { InstanceView } from '@floe/db'
import { type ClusterObserved, InstanceId, type OperationInput, operationRecords } from '@floe/domain'
import { expect, test } from 'vitest'
import { PATIENCE } from '../patience'
import type { Guarded, StepContext } from '../step'
import { restoreTable } from './restore-table'

const id = InstanceId.parse('0d8f2a9e-6c51-4a30-9f4e-1d2c3b4a5f60')
const input: OperationInput<'restore-table'> = {
  instanceId: id,
  database: 'shop',
  tableName: 'public.account',
  at: '2026-11-23T23:40:00Z',
  backupDirectory: '/srv/base',
  walDirectory: '/srv/wal',
}
const asked = (memberRole: 'primary' | 'standby') =>
  ({
    input,
    instance: { name: 'demo', cluster: { memberRole } } as InstanceView,
    readCluster: async () =>
      ({ primaryInstanceId: 'other', members: [{ instanceId: 'other', name: 'other' }] }) as never,
  }) as unknown as Guarded<'restore-table'>

test('it is ordered for a primary, and its step names the table and the moment', async () => {
  await restoreTable.guard?.(asked('primary'))
  await expect(restoreTable.guard?.(asked('standby'))).rejects.toMatchObject({
    fault: { message: 'instance "demo" is a standby', hint: 'Name the primary: "other".' },
  })
  expect(restoreTable.plan(input, { state: 'running' })).toEqual([
    {
      name: 'restore',
      title: 'Restore a backup beside the instance, and copy public.account as of 2026-11-23T23:40:00Z out',
    },
  ])
})

test('it needs an admin, keeps no failover waiting, and undoes nothing', () => {
  expect(operationRecords['restore-table']).toMatchObject({ role: 'admin', leavesPrimaryAlone: true })
  expect(operationRecords['restore-table'].order).not.toHaveProperty('command')
  expect(restoreTable.undo).toBeUndefined()
})

test.each([
  [{ backupDirectory: 'srv/base' }, 'must be an absolute path'],
  [{ walDirectory: '/srv/\n' }, 'must not contain control characters'],
  [{ tableName: 'account' }, 'must be a schema and a name'],
  [{ resultName: 'é'.repeat(32) }, 'must have at most 63 bytes'],
  [{ at: '2026-11-23 23:40' }, 'time zone'],
])('an input with %j is refused', (part, words) => {
  const parsed = operationRecords['restore-table'].input.safeParse({ ...input, ...part })
  expect(parsed.error?.issues[0]?.message).toContain(words)
})

test('the order that the agent gets says all of it; a host that stays silent fails it', async () => {
  const started: unknown[] = []
  const run = (silentMs: number, agent: object) =>
    restoreTable.steps.restore.run({
      operationId: 'o',
      input,
      step: { name: 'restore', attempt: 1, taskLogSeq: 0, startedAt: new Date(0) },
      cancelAskedAt: null,
      now: new Date(100_000),
      atWorkSince: new Date(0),
      patience: PATIENCE,
      results: {},
      readCluster: async () =>
        ({
          name: 'demo',
          members: [{ instanceId: id, name: 'demo', hostId: 'h', hostName: 'db1', ageMs: silentMs }],
        }) as unknown as ClusterObserved,
      agentOf: () => agent,
    } as unknown as StepContext<'restore-table'>)
  const silent = { checkTask: () => Promise.reject(new TypeError('fetch failed')) }
  expect(await run(21_000, silent)).toMatchObject({ word: 'fail', fault: { code: 'agent.unreachable' } })
  const states = ['not-started', 'running']
  await run(0, {
    checkTask: async () => ({ state: states.shift(), log: [], progress: null, message: null }),
    startTask: async (start: { task: unknown }) => started.push(start.task),
  })
  const { resultName: _none, ...rest } = { resultName: null, ...input }
  expect(started).toEqual([{ kind: 'restore-table', ...rest, resultName: null }])
})
