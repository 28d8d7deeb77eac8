import { describe, expect, test } from 'vitest'
import { AutomaticFailover } from './automatic-failover'
import type { ClusterMember, ClusterObserved } from './cluster'
import {
  type AutomaticContext,
  automaticBlockers,
  automaticShortage,
  decideFailover,
  isolationQuorum,
  watch,
} from './decide-failover'
import { ClusterHoldings } from './holdings/record'
import type { ReplicationObserved } from './replication'
import { memberId, observedMember } from './testing/observed-member'

const AFTER_MS = 5_000
const settings = AutomaticFailover.parse({ afterMs: AFTER_MS })
const replicationOf = (n: number, more: Partial<ReplicationObserved>): ReplicationObserved => ({
  ...(observedMember(n, '0/3000000').replication as ReplicationObserved),
  commitFloor: 'on',
  ...more,
})
const hearing = (silentMs: number) => ({
  status: 'streaming',
  senderHost: null,
  senderPort: null,
  slotName: null,
  receivedTimeline: 1,
  silentMs,
})
const primary = (more: Partial<ClusterMember> = {}) =>
  observedMember(1, '0/3000000', {
    intent: 'running',
    replication: replicationOf(1, {}),
    primaryKnown: {
      instanceId: memberId(1),
      timeline: 1,
      at: 0,
      heldBack: { isolatedAfterMs: 30_000, isolatedPrimary: 'read-only' },
    },
    ...more,
  })
const standby = (n: number, silentMs: number | null, more: Partial<ClusterMember> = {}) =>
  observedMember(n, '0/3000000', {
    replication: replicationOf(n, { receiver: silentMs === null ? null : hearing(silentMs) }),
    ...more,
  })
const cluster = (members: ClusterMember[], more: Partial<ClusterObserved> = {}): ClusterObserved => ({
  clusterId: '00000000-0000-4000-8000-0000000000ff' as never,
  name: 'one',
  control: 'agent',
  primaryInstanceId: memberId(1),
  synchronous: { method: 'any', count: 1, instanceIds: [memberId(2), memberId(3)], strict: true },
  commitMode: 'on',
  holdings: ClusterHoldings.parse({ timeline: { timeline: 1, ancestors: [] }, floor: true }),
  automatic: settings,
  members,
  ...more,
})
const candidate = { instanceId: memberId(2), name: 'one-2', blockers: [] }
const nothingDone = { inDoubt: false, open: null, sinceLastMs: null, tries: { start: 0, failover: 0 } }

/** What is decided when the cluster is seen so at the end, and was well before; `forMs` apart. */
function decide(now: ClusterObserved, forMs: number, more: Partial<AutomaticContext> = {}) {
  const well = watch(cluster([primary(), standby(2, 0), standby(3, 0)]), null, 100_000)
  const at = 100_000 + forMs
  return decideFailover(now, {
    settings,
    watched: watch(now, well, at),
    now: at,
    candidate,
    ...nothingDone,
    ...more,
  })
}
const silentHost = (ms: number) => primary({ ageMs: ms, hostState: ms >= 5_000 ? 'stale' : 'online' })
/** Of an engine that does not answer its agent reports the state, and nothing of replication. */
const down = (state: ClusterMember['state']) => primary({ state, role: null, replication: null })
const lost = (ms: number) => [standby(2, ms), standby(3, null)]

test('who is missing for a failover that nobody needs yet is named, as soon as too few are left', () => {
  const detail = (...standbys: ClusterMember[]) =>
    automaticShortage(cluster([primary(), ...standbys]))?.detail ?? null
  const away = standby(3, null, { ageMs: 9_000, hostState: 'stale' })
  expect(detail(standby(2, 0), standby(3, 0))).toBeNull()
  expect(detail(standby(2, 0), away)).toBe(
    `"one-3" on host "${away.hostName}" does not answer. 2 of 2 synchronous standbys have to report that they lost it.`,
  )
  // a fenced one confirms nothing, and cannot take over
  const fenced = { memberRole: 'fenced', state: 'stopped' } as const
  expect(detail(standby(2, 0), standby(3, null, fenced))).toBeNull()
  expect(detail(standby(2, 0, fenced), standby(3, null, { state: 'crashed' }))).toBe(
    'No synchronous standby could take over. "one-2" has to be rejoined. "one-3" is crashed.',
  )
  // FIRST 2 of two: one that lost the primary is enough
  const two = { method: 'first', count: 2, instanceIds: [memberId(2), memberId(3)], strict: true } as const
  expect(
    automaticShortage(
      cluster([primary(), standby(2, 0), away], {
        synchronous: { ...two, instanceIds: [...two.instanceIds] },
      }),
    ),
  ).toBeNull()
})

test('nothing is done while the primary is reported to run', () => {
  expect(decide(cluster([primary(), standby(2, 0), standby(3, 0)]), 60_000)).toEqual({ do: 'nothing' })
  expect(decide(cluster([primary(), ...lost(60_000)]), 60_000)).toEqual({ do: 'nothing' })
})

describe('both witnesses agree for long enough', () => {
  test('a silent host and standbys that have lost it: a failover, with its host given up', () => {
    const now = cluster([silentHost(6_500), ...lost(6_500)])
    expect(decide(now, 6_500)).toMatchObject({
      do: 'failover',
      candidate: memberId(2),
      unreachableHost: 'h1',
    })
    expect(decide(now, 6_500)).toMatchObject({
      why: expect.arrayContaining([expect.stringContaining('not answered')]),
    })
  })
  test('one that its agent says has crashed, once a start did not help', () => {
    const crashed = cluster([down('crashed'), standby(2, null), standby(3, null)])
    expect(decide(crashed, 1_000)).toMatchObject({ do: 'start' })
    expect(decide(crashed, 1_000, { tries: { start: 1, failover: 0 } })).toMatchObject({ do: 'wait' })
    expect(decide(crashed, 6_000, { tries: { start: 1, failover: 0 } })).toMatchObject({
      do: 'failover',
      unreachableHost: null,
    })
  })
  test('its own start that takes too long is given up before', () => {
    const starting = cluster([down('starting'), standby(2, null), standby(3, null)])
    const open = { title: 'Start instance', own: true }
    expect(decide(starting, 4_000, { open })).not.toHaveProperty('due')
    expect(decide(starting, 6_000, { open })).toMatchObject({ do: 'wait', due: true })
  })
  test('a hung primary that one standby of three still hears, where two have to have lost it', () => {
    const hung = down('starting')
    const three = {
      synchronous: {
        method: 'any' as const,
        count: 2,
        instanceIds: [memberId(2), memberId(3), memberId(4)],
        strict: true,
      },
    }
    const members = [hung, standby(2, 9_000), standby(3, null), standby(4, 10)]
    expect(decide(cluster(members, three), 9_000)).toMatchObject({ do: 'failover' })
  })
})

describe('what keeps it from a failover', () => {
  const waits = (
    now: ClusterObserved,
    forMs: number,
    words: string,
    more: Partial<AutomaticContext> = {},
  ) => {
    const decision = decide(now, forMs, more)
    expect(['wait', 'decline']).toContain(decision.do)
    expect('why' in decision && decision.why).toContain(words)
  }
  const both = cluster([silentHost(6_500), ...lost(6_500)])

  test('a standby that still hears the primary', () =>
    waits(
      cluster([silentHost(20_000), standby(2, 100), standby(3, null)]),
      20_000,
      '"one-2" received a message from it',
    ))
  test('too few standbys that have lost it', () =>
    waits(
      cluster([
        silentHost(20_000),
        standby(2, null),
        standby(3, null, { ageMs: 20_000, hostState: 'stale' }),
      ]),
      20_000,
      '2 of 2 synchronous standbys have to report that they lost it; only "one-2" does. "one-3" does not answer.',
    ))
  test('a silence that is shorter than asked for', () =>
    waits(cluster([silentHost(4_000), ...lost(4_000)]), 4_000, 'after 5.0 s'))
  test('standbys that lost it later than its host fell silent', () =>
    waits(
      cluster([silentHost(6_500), standby(2, 3_000), standby(3, 3_000)]),
      6_500,
      'received a message from it',
    ))
  test('a standstill of whoever looks: silence counts anew', () => {
    const now = cluster([silentHost(60_000), ...lost(60_000)])
    const watched = watch(now, null, 500_000)
    expect(decideFailover(now, { settings, watched, now: 500_400, candidate, ...nothingDone })).toEqual({
      do: 'nothing',
    })
  })
  test('a restored control database', () => waits(both, 6_500, 'a person has to decide', { inDoubt: true }))
  test('an operation of somebody', () =>
    waits(both, 6_500, '"Switchover"', { open: { title: 'Switchover', own: false } }))
  test('a promotion that is not settled', () =>
    waits(
      {
        ...both,
        holdings: ClusterHoldings.parse({
          timeline: { timeline: 1, ancestors: [] },
          promotions: [
            {
              instanceId: memberId(3),
              from: null,
              operationId: crypto.randomUUID(),
              step: 'promote',
              attempt: 1,
            },
          ],
        }),
      },
      6_500,
      '"one-3" may have been promoted',
    ))
  test('the last one less than ten minutes ago', () =>
    waits(both, 6_500, 'minimum interval is 600.0 s', { sinceLastMs: 599_000 }))
  test('three that did not succeed', () =>
    waits(both, 6_500, 'a person has to decide', { tries: { start: 0, failover: 3 } }))
  test('a candidate that cannot be proven to lose nothing', () =>
    waits(both, 6_500, 'levels are unknown', {
      candidate: {
        ...candidate,
        blockers: [{ code: 'commits.levels_unknown', message: 'levels are unknown' }],
      },
    }))
  test('a primary that reported no floor, or one below the level of the cluster', () => {
    for (const commitFloor of [null, 'off', 'remote_write'])
      waits(
        cluster([{ ...silentHost(6_500), replication: replicationOf(1, { commitFloor }) }, ...lost(6_500)]),
        6_500,
        'polar_commit_floor',
      )
  })
  test('one that does not answer, and of whose floor nothing is recorded', () =>
    waits(
      cluster([down('starting'), ...lost(6_500)], {
        holdings: ClusterHoldings.parse({ timeline: { timeline: 1, ancestors: [] } }),
      }),
      6_500,
      'is not recorded',
    ))
  test('an agent that was not told to hold it back', () =>
    waits(
      cluster([{ ...silentHost(6_500), primaryKnown: null }, ...lost(6_500)]),
      6_500,
      'does not hold it back',
    ))
  test('a set that is not strict', () =>
    waits(
      {
        ...both,
        synchronous: { method: 'any', count: 1, instanceIds: [memberId(2), memberId(3)], strict: false },
      },
      6_500,
      'no strict set',
    ))
})

test('one that a person stopped stays stopped', () => {
  const stopped = cluster([primary({ state: 'stopped', intent: 'stopped', role: null }), ...lost(60_000)])
  expect(decide(stopped, 60_000)).toEqual({ do: 'nothing' })
})

test('how many standbys have to be isolated follows from the set', () => {
  const of = (count: number, n: number) =>
    isolationQuorum({ count, instanceIds: Array.from({ length: n }, (_, i) => memberId(i + 2)) })
  expect([of(1, 2), of(2, 2), of(1, 3), of(2, 3)]).toEqual([2, 1, 3, 2])
})

test('what a cluster needs to fail over by itself, each by name', () => {
  const good = cluster([primary(), standby(2, 0), standby(3, 0)])
  const codes = (of: ClusterObserved) => automaticBlockers(of).map((b) => b.code)
  expect(codes(good)).toEqual([])
  expect(codes({ ...good, synchronous: null })).toEqual(['automatic.asynchronous'])
  expect(
    codes({ ...good, synchronous: { ...(good.synchronous as never as object), strict: false } as never }),
  ).toEqual(['automatic.not_strict'])
  expect(codes({ ...good, commitMode: 'local' })).toEqual(['automatic.level'])
  expect(codes(cluster([primary(), standby(2, 0)]))).toEqual([
    'automatic.too_few_standbys',
    'automatic.too_few_hosts',
  ])
  expect(codes(cluster([primary(), standby(2, 0), standby(3, 0, { hostId: memberId(1) as never })]))).toEqual(
    ['automatic.too_few_hosts'],
  )
  expect(
    codes(
      cluster([
        primary(),
        standby(2, 0),
        standby(3, 0, { replication: replicationOf(3, { commitFloor: null }) }),
      ]),
    ),
  ).toEqual(['automatic.no_floor'])
})
