import { expect, test } from 'vitest'
import type { ClusterMember } from './cluster'
import { memberOfSource, repairSourcesOf } from './page-repair'

const member = (n: number, memberRole: ClusterMember['memberRole'] = 'standby') =>
  ({
    instanceId: `i-${n}`,
    name: `one-${n}`,
    memberRole,
    connection: { host: '10.0.0.1', port: 5500 + n },
  }) as never as ClusterMember
const cluster = (pageRepair?: { enabled: boolean; excluded: string[] }, more: ClusterMember[] = []) =>
  ({
    primaryInstanceId: 'i-1',
    members: [member(1, 'primary'), member(3), member(2), ...more],
    ...(pageRepair ? { pageRepair } : {}),
  }) as never as Parameters<typeof repairSourcesOf>[0]
const names = (...args: Parameters<typeof repairSourcesOf>) => repairSourcesOf(...args).map((m) => m.name)

test('every standby is a source of the primary; a standby asks the primary first, never itself', () => {
  expect(names(cluster(), 'i-1')).toEqual(['one-2', 'one-3'])
  expect(names(cluster(), 'i-2')).toEqual(['one-1', 'one-3'])
})

test('an excluded standby gives nothing, but the primary always serves its standbys', () => {
  const chosen = { enabled: true, excluded: ['i-2', 'i-1'] }
  expect(names(cluster(chosen), 'i-1')).toEqual(['one-3'])
  expect(names(cluster(chosen), 'i-2')).toEqual(['one-1', 'one-3'])
  expect(names(cluster({ enabled: false, excluded: [] }), 'i-1')).toEqual([])
})

test('one that leaves is nobody’s source and has none; a fenced one may have another history', () => {
  expect(names(cluster(), 'i-1', 'i-2')).toEqual(['one-3'])
  expect(names(cluster(), 'i-2', 'i-2')).toEqual([])
  expect(names(cluster(undefined, [member(4, 'fenced')]), 'i-1')).toEqual(['one-2', 'one-3'])
})

test('the engine takes no more than eight', () => {
  const many = [4, 5, 6, 7, 8, 9, 10, 11].map((n) => member(n))
  expect(names(cluster(undefined, many), 'i-1')).toHaveLength(8)
})

test('what the engine calls a source is a member', () => {
  expect(memberOfSource(cluster(), '10.0.0.1:5503/postgres')?.name).toBe('one-3')
  expect(memberOfSource(cluster(), '10.0.0.2:5503/postgres')).toBeUndefined()
})
