import { expect, test } from 'vitest'
import type { ClusterMember } from '../cluster'
import type { InstanceId } from '../ids'
import type { Lsn } from '../lsn'
import { isNewerThanRecord, primaryToTell, reportedPrimary } from './known-primary'
import {
  holdingsAsReported,
  newestRecorded,
  type PromotionBegun,
  unknownHoldings,
  withPrimary,
  withPromotionPassed,
} from './record'
import type { Timeline } from './wal-position'

const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}` as InstanceId
const on = (timeline: number): Timeline => ({
  timeline,
  ancestors: Array.from({ length: timeline - 1 }, (_, i) => ({
    timeline: i + 1,
    end: `0/${i + 1}000` as Lsn,
  })),
})
const recorded = (timeline: number, promoting: number[] = []) => ({
  ...holdingsAsReported(on(timeline)),
  promotions: promoting.map((n) => ({ instanceId: id(n) }) as PromotionBegun),
})
const told = (n: number, timeline: number) => ({ instanceId: id(n), timeline })

/** A cluster of members 1 to 3 whose recorded primary is member 1. */
const cluster = (holdings: ReturnType<typeof recorded>) => ({
  primaryInstanceId: id(1),
  members: [1, 2, 3].map((n) => ({ instanceId: id(n) }) as ClusterMember),
  holdings,
})

test('only a newer timeline than any that is recorded makes a record older than the cluster', () => {
  expect(newestRecorded(recorded(3))).toBe(3)
  const newer = (n: number, timeline: number) => isNewerThanRecord(told(n, timeline), cluster(recorded(3)))
  expect([2, 3, 4].map((t) => newer(2, t))).toEqual([false, false, true])
  // an agent of a member that was left out long ago knows less, and of another primary
  expect(newer(9, 1)).toBe(false)
  // one that the record does not know of as a member may have become the primary since
  expect(newer(9, 4)).toBe(true)
})

test('of a record whose primary has reported no timeline yet, another member as the primary is newer', () => {
  const none = cluster({ ...unknownHoldings(), promotions: [] })
  expect(newestRecorded(none.holdings)).toBe(0)
  expect(isNewerThanRecord(told(2, 2), none)).toBe(true)
  expect(isNewerThanRecord(told(1, 2), none)).toBe(false)
  // a standby that was given a cluster of its own was told of the primary of another one
  expect(isNewerThanRecord(told(9, 2), none)).toBe(false)
  // its promotion was begun before any report told which timeline it would begin
  const begun = cluster({ ...unknownHoldings(), promotions: recorded(1, [2]).promotions })
  expect(isNewerThanRecord(told(2, 2), begun)).toBe(false)
  expect(isNewerThanRecord(told(3, 2), begun)).toBe(true)
  // its promotion is recorded, the history that it began could not be read
  const unread = cluster({ ...recorded(3), timeline: null })
  expect(isNewerThanRecord(told(1, 4), unread)).toBe(false)
  expect(isNewerThanRecord(told(2, 3), unread)).toBe(false)
  expect(isNewerThanRecord(told(2, 4), unread)).toBe(true)
})

test('a promotion that is recorded as begun explains what its agent was told, and that of no other', () => {
  expect(isNewerThanRecord(told(2, 4), cluster(recorded(3, [2])))).toBe(false)
  expect(isNewerThanRecord(told(1, 5), cluster(recorded(3, [2])))).toBe(true)
  // it began one timeline: that its member leads on a later one is another promotion
  expect(isNewerThanRecord(told(2, 5), cluster(recorded(3, [2])))).toBe(true)
})

test('what an agent was told by a promotion that was passed by is no news', () => {
  const begun = { instanceId: id(2), operationId: 'o' } as PromotionBegun
  // member 2 was promoted unheard, fenced, and follows member 1 again: its agent goes on knowing of timeline 2
  const rejoined = withPromotionPassed({ ...recorded(1), promotions: [begun] }, 'o')
  expect(rejoined.promotions).toEqual([])
  expect(isNewerThanRecord(told(2, 2), cluster(rejoined))).toBe(false)
  expect(isNewerThanRecord(told(2, 3), cluster(rejoined))).toBe(true)
  // member 3 took over instead, from an older timeline
  const other = { ...begun, instanceId: id(3), operationId: 'p' }
  const as = { rule: null, weaker: null }
  const taken = withPrimary({ ...recorded(2), promotions: [begun, other] }, { timeline: on(2), ...as })
  expect(isNewerThanRecord(told(2, 3), cluster(taken))).toBe(false)
  // a history that could not be read: the number of its timeline is known all the same
  const unread = withPrimary(
    { ...recorded(1), promotions: [begun] },
    {
      timeline: { timeline: 2, ancestors: null },
      ...as,
    },
  )
  expect([unread.timeline, newestRecorded(unread)]).toEqual([null, 2])
})

test('agents are told the recorded primary, and nothing while its timeline is unknown', () => {
  expect(primaryToTell({ primaryInstanceId: id(1), holdings: recorded(3) })).toEqual(told(1, 3))
  expect(primaryToTell({ primaryInstanceId: id(1), holdings: unknownHoldings() })).toBeNull()
})

const member = (n: number, more: Partial<ClusterMember> & { on?: number } = {}) =>
  ({
    instanceId: id(n),
    name: `m-${n}`,
    hostName: `h-${n}`,
    hostState: 'online',
    state: 'running',
    role: 'standby',
    fenced: null,
    replication: on(more.on ?? 4),
    primaryKnown: { ...told(2, 4), at: 1 },
    ...more,
  }) as ClusterMember
const primary = (more: Partial<ClusterMember> & { on?: number } = {}) =>
  member(2, { role: 'primary', ...more })

test('the reported primary is proven by all hosts, all agents and the member itself', () => {
  expect(reportedPrimary({ members: [member(1), primary(), member(3)] })).toEqual({
    proven: true,
    instanceId: id(2),
    timeline: on(4),
    following: [id(1), id(3)],
  })
  // told of less, or fenced: no standby of it that is known to follow
  const others = [
    member(1, { primaryKnown: { ...told(1, 3), at: 1 } }),
    member(3, { fenced: { at: 1, reason: '' } }),
  ]
  expect(reportedPrimary({ members: [primary(), ...others] })).toMatchObject({ proven: true, following: [] })
})

test.each([
  ['does not answer', [primary(), member(1, { hostState: 'offline' })]],
  ['does not answer', [primary(), member(1, { state: 'unknown' })]],
  ['No agent was informed', [primary({ primaryKnown: null }), member(1, { primaryKnown: null })]],
  ['disagree', [primary(), member(1, { primaryKnown: { ...told(1, 4), at: 1 } })]],
  ['no member any more', [member(1), member(3)]],
  ['itself was not informed', [primary({ primaryKnown: { ...told(1, 3), at: 1 } }), member(1)]],
  ['does not run as the primary', [primary({ role: 'standby' }), member(1)]],
  ['does not run as the primary', [primary({ state: 'stopped' }), member(1)]],
  ['does not run as the primary', [primary({ fenced: { at: 1, reason: '' } }), member(1)]],
  // what an engine says of itself does not make it newer than what its agent was told
  ['does not run as the primary', [primary({ on: 9 }), member(1)]],
  ['is a primary, too', [primary(), member(1, { role: 'primary', on: 3 })]],
  // a hostile host may name its own member while the true primary is down
  [
    'it may be the primary',
    [primary(), member(1, { state: 'crashed', role: null, primaryKnown: { ...told(1, 3), at: 1 } })],
  ],
])('it is not proven: %s', (why, members) => {
  expect(reportedPrimary({ members })).toEqual({ proven: false, why: expect.stringContaining(why) })
})
