import type { ClusterObserved } from '@floe/domain'
import { expect, test } from 'vitest'
import type { StepContext } from '../step'
import { changeClusterSettings } from './change-cluster-settings'

const id = (n: number) => `0000000${n}-0000-4000-8000-000000000000`
const cluster = {
  clusterId: id(9),
  control: 'agent',
  primaryInstanceId: id(1),
  members: [1, 2, 3].map((n) => ({
    instanceId: id(n),
    name: `m${n}`,
    hostId: id(n + 3),
    hostName: `h${n}`,
  })),
} as unknown as ClusterObserved
const check = (from: number, to: number, before: Record<string, string>) => ({
  checked: [
    { name: 'max_connections', impact: 'restart', oldValue: String(from), oldNumber: from, newNumber: to },
  ],
  managed: before,
  pendingRestart: [],
})
const context = (from: number, to: number, before: Record<string, string> = {}) =>
  ({
    input: {
      clusterId: id(9),
      instanceId: id(1),
      restart: true,
      members: [1, 2, 3].map((n) => ({
        instanceId: id(n),
        changes: [{ name: 'max_connections', value: String(to) }],
      })),
    },
    results: {
      check: { said: Object.fromEntries([1, 2, 3].map((n) => [`m${n}`, check(from, to, before)])) },
    },
    step: { name: 'primary' },
  }) as unknown as StepContext<'change-cluster-settings'>
const undo = (c: StepContext<'change-cluster-settings'>) =>
  changeClusterSettings.undo?.(c, cluster, { code: 'x', message: 'x' }) ?? []

test('the way back from a greater value: the primary, then each standby once it replayed that', () => {
  const tasks = undo(context(100, 200, { max_connections: '100' }))
  expect(tasks.map((t) => [t.id, t.after])).toEqual([
    ['set.m1', 'primary'],
    ['restart.m1', 'primary'],
    ['await.m2', 'standbys'],
    ['set.m2', 'standbys'],
    ['restart.m2', 'standbys'],
    ['await.m3', 'standbys'],
    ['set.m3', 'standbys'],
    ['restart.m3', 'standbys'],
  ])
  expect(tasks[2]?.task).toMatchObject({ kind: 'await-settings', atMost: { max_connections: 100 } })
  expect(tasks[3]?.task).toMatchObject({ changes: [{ name: 'max_connections', value: '100' }] })
  // a standby is not made smaller while its primary may still be greater
  expect(tasks[3]?.needs).toEqual(['set.m1', 'restart.m1'])
})

test('the way back from a smaller value: the standbys, then the primary, which waits for them', () => {
  const tasks = undo(context(200, 100))
  expect(tasks.map((t) => [t.id, t.after])).toEqual([
    ['set.m2', 'replayed'],
    ['restart.m2', 'replayed'],
    ['set.m3', 'replayed'],
    ['restart.m3', 'replayed'],
    ['set.m1', 'primary'],
    ['restart.m1', 'primary'],
  ])
  expect(tasks[4]?.needs).toEqual(['set.m2', 'restart.m2', 'set.m3', 'restart.m3'])
  // the line was not there before
  expect(tasks[4]?.task).toMatchObject({ changes: [{ name: 'max_connections', value: null }] })
  expect(tasks[4]?.leaves?.words).toBe('"m1" may have max_connections = 100')
})

test('before the members have said what they hold there is nothing to take back', () => {
  expect(undo({ ...context(1, 2), results: {} })).toEqual([])
})

test('the plan is the same whatever the members are: phases without work pass at once', () => {
  const plan = changeClusterSettings.plan({ members: [] } as never, { state: 'running' })
  expect(plan.map((s) => s.name)).toEqual(['check', 'standbys', 'primary', 'replayed', 'observe', 'confirm'])
})
