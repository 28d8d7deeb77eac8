import type { ClusterObserved, SynchronousStandbys } from '@floe/domain'
import { expect, test } from 'vitest'
import { changeSynchronous, followingOf, tooFewFollow } from './change-synchronous'

/** A primary that sees these standbys stream, of three. */
function cluster(...streams: string[]): ClusterObserved {
  const member = (name: string) => ({
    instanceId: name,
    name,
    hostName: `h-${name}`,
    hostState: 'online',
    memberRole: name === 'p' ? 'primary' : 'standby',
    role: name === 'p' ? 'primary' : 'standby',
    state: 'running',
    fenced: null,
    replication: {
      standbys: streams.map((applicationName) => ({ applicationName, state: 'streaming' })),
    },
  })
  return {
    primaryInstanceId: 'p',
    synchronous: null,
    members: ['p', 'a', 'b', 'c'].map(member),
  } as unknown as ClusterObserved
}
const set = (count: number, ids: string[], more: Partial<SynchronousStandbys> = {}) =>
  ({ method: 'any', count, instanceIds: ids, strict: false, ...more }) as SynchronousStandbys

test('a standby that follows nobody is not named, and that is said', () => {
  const found = followingOf(cluster('a', 'b'), { synchronous: set(1, ['a', 'b', 'c']) })
  expect(found.names).toBe('ANY 1 ("a", "b")')
  expect(found.leftOut).toEqual([{ name: 'c', why: '"c" does not stream from "p"' }])
  expect(followingOf(cluster('a', 'b', 'c'), { synchronous: set(1, ['a', 'b', 'c']) }).leftOut).toEqual([])
})

test('commits never wait for fewer than was asked for because of that', () => {
  // the set of before, with fewer that follow than it asks for
  const synchronous = set(2, ['a', 'b'])
  expect(followingOf(cluster('a'), { synchronous })).toEqual({ names: 'ANY 2 ("a", "b")', leftOut: [] })
  expect(
    followingOf(cluster('a', 'b'), { synchronous: set(2, ['a', 'b', 'c'], { strict: true }) }).names,
  ).toBe('ANY 2 ("a", "b")')
})

test('a new set of which too few follow is refused before anything is changed', () => {
  const refused = (c: ClusterObserved, synchronous: SynchronousStandbys | null, commitMode = 'on' as const) =>
    tooFewFollow(c, { synchronous, commitMode })?.code ?? null
  expect(refused(cluster('a'), set(2, ['a', 'b']))).toBe('cluster.too_few_standbys')
  expect(refused(cluster(), set(1, ['a']))).toBe('cluster.too_few_standbys')
  expect(refused(cluster('a'), set(1, ['a', 'b']))).toBeNull()
  expect(refused(cluster(), null)).toBeNull()
  // nobody is kept from letting commits go on
  expect(refused(cluster(), set(1, ['a']), 'local' as never)).toBeNull()
  expect(refused({ ...cluster(), synchronous: set(1, ['a']) }, set(1, ['a']))).toBeNull()
})

test('commits are made to wait for standbys of the cluster only', async () => {
  const asked = (synchronous: SynchronousStandbys | null) =>
    changeSynchronous.guard?.({
      input: { synchronous, commitMode: 'on' },
      instance: { name: 'p', cluster: { memberRole: 'primary' } },
      readCluster: async () => cluster('a', 'b'),
    } as never)
  const refused = (id: string) => `instance ${id} is not a standby of this cluster`
  await expect(asked(set(1, ['a', 'x']))).rejects.toThrow(refused('x'))
  await expect(asked(set(1, ['p', 'a']))).rejects.toThrow(refused('p'))
  await asked(set(1, ['a', 'b']))
})
