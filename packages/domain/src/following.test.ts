import { describe, expect, test } from 'vitest'
import type { ClusterMember, ClusterObserved } from './cluster'
import { partedAt, whyNotFollowing } from './following'
import type { InstanceId } from './ids'
import type { Lsn } from './lsn'
import type { ReplicationObserved } from './replication'

const fork = { timeline: 1, end: '0/3000000' as Lsn }
const wal = (endLsn: string | null, timeline: number, more: Partial<ReplicationObserved> = {}) =>
  ({
    endLsn,
    timeline,
    ancestors: timeline === 1 ? [] : [fork],
    standbys: [],
    ...more,
  }) as ReplicationObserved
const member = (name: string, replication: ReplicationObserved | null, more: Partial<ClusterMember> = {}) =>
  ({
    instanceId: name,
    name,
    hostName: `h-${name}`,
    hostState: 'online',
    memberRole: name === 'p' ? 'primary' : 'standby',
    role: name === 'p' ? 'primary' : 'standby',
    state: 'running',
    replication,
    fenced: null,
    ...more,
  }) as ClusterMember
/** A primary that began timeline 2 where timeline 1 had come to 0/3000000, and a standby that streams, or does not. */
function cluster(standby: ClusterMember, { streams = false, primary = {} as Partial<ClusterMember> } = {}) {
  const standbys = streams ? [{ applicationName: 's', state: 'streaming' }] : []
  return {
    primaryInstanceId: 'p' as InstanceId,
    holdings: { timeline: { timeline: 2, ancestors: [fork] } },
    members: [member('p', wal('0/5000000', 2, { standbys: standbys as never }), primary), standby],
  } as unknown as ClusterObserved
}
const parted = (s: ClusterMember, more = {}) => partedAt(cluster(s, more), s)

describe('a standby has left the history of its cluster', () => {
  test('where it has WAL after the end of a timeline that its primary went on from', () => {
    expect(parted(member('s', wal('0/3000180', 1)))).toBe('0/3000000')
    expect(parted(member('s', wal('0/9000000', 1)))).toBe('0/3000000')
  })

  test('not where it is only behind, however far, or ahead of what was seen of its primary', () => {
    expect(parted(member('s', wal('0/3000000', 1)))).toBeNull()
    expect(parted(member('s', wal('0/1000000', 1)))).toBeNull()
    expect(parted(member('s', wal('0/6000000', 2)))).toBeNull()
  })

  test('also by what it has replayed, where the end of its WAL is not known since its start', () => {
    const replayedLsn = '0/4000000' as Lsn
    expect(parted(member('s', wal(null, 1, { replayedLsn })))).toBe('0/3000000')
  })

  test('by the recorded history where its primary is gone', () => {
    const gone = { primary: { hostState: 'offline', state: 'unknown' } as Partial<ClusterMember> }
    expect(parted(member('s', wal('0/3000180', 1)), gone)).toBe('0/3000000')
  })

  test('never without proof: it streams, is not seen, or its history or place is not known', () => {
    expect(parted(member('s', wal('0/3000180', 1)), { streams: true })).toBeNull()
    expect(parted(member('s', wal('0/3000180', 1), { hostState: 'offline' }))).toBeNull()
    expect(parted(member('s', wal('0/3000180', 3, { ancestors: null })))).toBeNull()
    expect(parted(member('s', null))).toBeNull()
    const s = member('s', wal('0/3000180', 1))
    const nothingRecorded = { ...cluster(s, { primary: { replication: null } }), holdings: undefined }
    expect(partedAt(nothingRecorded as never, s)).toBeNull()
  })
})

test('who would confirm no commit is named with the reason, and who follows is not', () => {
  const why = (s: ClusterMember, more = {}) => whyNotFollowing(cluster(s, more), s)?.code ?? null
  const well = wal('0/5000000', 2)
  expect(why(member('s', well), { streams: true })).toBeNull()
  expect(why(member('s', well, { hostState: 'offline' }), { streams: true })).toBe('standby.silent')
  expect(why(member('s', well, { hostState: 'stale' }))).toBe('standby.silent')
  // its agent is away for a moment, and the primary sees it stream
  expect(why(member('s', well, { hostState: 'stale' }), { streams: true })).toBeNull()
  expect(why(member('s', well, { state: 'unknown' }), { streams: true })).toBe('standby.silent')
  expect(why(member('s', well, { memberRole: 'fenced' }))).toBe('standby.fenced')
  expect(why(member('s', well, { state: 'stopped' }))).toBe('standby.not_running')
  expect(why(member('s', wal('0/3000180', 1)))).toBe('standby.diverged')
  expect(why(member('s', well))).toBe('standby.not_streaming')
  // nobody can say what it does while its primary is not seen
  expect(why(member('s', well), { primary: { hostState: 'offline', state: 'unknown' } })).toBeNull()
})
