import type { ClusterMember, ClusterObserved } from '@floe/domain'
import { expect, test } from 'vitest'
import { isolatedCluster, judgeAcceptance } from './failover-cluster'

const member = (instanceId: string, name: string): ClusterMember =>
  ({
    instanceId,
    name,
    hostState: 'online',
    state: 'running',
    role: 'standby',
    memberRole: 'standby',
    replication: { endLsn: '0/0' },
  }) as unknown as ClusterMember

const observed = {
  clusterId: 'c',
  primaryInstanceId: 'p',
  commitMode: 'on',
  synchronous: { method: 'any', count: 1, instanceIds: ['a', 'b'], strict: false },
  members: [
    { ...member('p', 'p'), role: 'primary', memberRole: 'primary' },
    member('a', 'a'),
    member('b', 'b'),
  ],
} as unknown as ClusterObserved
const isolated = (a: string | null, b: string | null) =>
  isolatedCluster(observed, 'p', {
    a: a ? { endLsn: a, replayedLsn: a, timeline: 1 } : { fault: { code: 'agent.unreachable', message: '' } },
    b: b ? { endLsn: b, replayedLsn: b, timeline: 1 } : { fault: { code: 'agent.unreachable', message: '' } },
  })
const judge = (c: ClusterObserved, id: string, end: string | null, accept: number | 'unknown' | null) => {
  const candidate = c.members.find((m) => m.instanceId === id) as ClusterMember
  const { lossBytes, fault } = judgeAcceptance(c, candidate, end as never, accept)
  return [lossBytes, fault?.code ?? null]
}

test('of isolated standbys the furthest is lossless, and another one is refused with who is ahead', () => {
  const c = isolated('0/3000010', '0/3000000')
  expect(judge(c, 'a', '0/3000020', null)).toEqual([0, null])
  expect(judge(c, 'b', '0/3000020', null)).toEqual([32, 'candidate.behind'])
  expect(judge(c, 'b', '0/3000020', 31)).toEqual([32, 'failover.loss_not_accepted'])
  expect(judge(c, 'b', '0/3000020', 32)).toEqual([32, null])
})

test('one that does not answer counts as unseen: who is left may lack what it acknowledged', () => {
  const c = isolated('0/3000010', null)
  expect(judge(c, 'a', null, null)).toEqual([null, 'candidate.quorum_unseen'])
  expect(judge(c, 'a', null, 1_000_000)).toEqual([null, 'failover.loss_not_accepted'])
  expect(judge(c, 'a', null, 'unknown')).toEqual([null, null])
})

test('a candidate that reaches the end of the former primary’s WAL loses nothing, whatever the mode', () => {
  const c = { ...isolated('0/3000010', '0/3000000'), synchronous: null }
  expect(judge(c, 'a', '0/3000010', null)).toEqual([0, null])
  expect(judge(c, 'a', '0/3000011', null)).toEqual([1, 'failover.loss_not_accepted'])
})
