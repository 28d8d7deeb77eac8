import type { ClusterMember, ClusterObserved, Lsn, ReplicationObserved } from '@floe/domain'
import { expect, test } from 'vitest'
import { deriveClusterIncidents } from './derive-cluster-incidents'

const fork = { timeline: 1, end: '0/3000000' as Lsn }
const wal = (endLsn: string, timeline = 2, more: Partial<ReplicationObserved> = {}) =>
  ({
    endLsn,
    timeline,
    ancestors: timeline === 1 ? [] : [fork],
    standbys: [],
    receiver: null,
    ...more,
  }) as unknown as ReplicationObserved
const member = (name: string, more: Partial<ClusterMember> = {}) =>
  ({
    instanceId: name,
    name,
    hostName: `h-${name}`,
    hostState: 'online',
    memberRole: name === 'c1' ? 'primary' : 'standby',
    role: name === 'c1' ? 'primary' : 'standby',
    state: 'running',
    intent: 'running',
    connection: { host: name, port: 1 },
    replication: wal('0/5000000'),
    fenced: null,
    ...more,
  }) as unknown as ClusterMember
const streaming = (...names: string[]) => ({
  replication: wal('0/5000000', 2, {
    standbys: names.map((applicationName) => ({ applicationName, state: 'streaming' })) as never,
  }),
})
const cluster = (members: ClusterMember[], more: object = {}) =>
  ({
    clusterId: 'c',
    name: 'c',
    primaryInstanceId: 'c1',
    synchronous: null,
    commitMode: 'on',
    holdings: {
      timeline: { timeline: 2, ancestors: [fork] },
      begun: [],
      promotions: [],
      rules: [null],
      weaker: [],
      ...more,
    },
    members,
  }) as unknown as ClusterObserved
const derive = (members: ClusterMember[], more?: object) => deriveClusterIncidents(cluster(members, more))
const silent = { hostState: 'offline', state: 'unknown' } as const
const begun = (instanceId: string) => ({
  promotions: [{ instanceId, operationId: 'o', step: 'promote', attempt: 1, from: null }],
})

test('a cluster whose members follow its primary has no incident', () => {
  expect(derive([member('c1', streaming('c2')), member('c2')])).toEqual([])
})

test('a demoted primary that nobody took over from: nobody can write, and the verb that leads out is named', () => {
  const fenced = { at: 0, reason: 'it was demoted in a switchover' }
  const [incident, ...others] = derive([
    member('c1', { state: 'stopped', fenced }),
    member('c2'),
    member('c3'),
  ])
  expect(others).toEqual([])
  expect(incident).toMatchObject({ key: 'no-primary:c', severity: 'critical', instanceId: 'c1' })
  expect(incident?.title).toBe('cluster "c" has no primary: clients cannot write')
  expect(incident?.detail).toBe('Its primary "c1" is stopped and fenced: it was demoted in a switchover.')
  expect(incident?.hint).toBe('Fail over: "./floe cluster failover c --to c2".')
})

test('a candidate that fell silent at its promotion: it is named, and another one is offered', () => {
  const members = [member('c1', { state: 'stopped' }), member('c2', silent), member('c3')]
  const [incident] = derive(members, begun('c2'))
  expect(incident?.detail).toContain('"c2" on host "h-c2" may have been promoted')
  expect(incident?.hint).toContain('./floe cluster failover c --to c3')
})

test('one that turns out to have been promoted is the one to be taken', () => {
  const promoted = member('c2', { role: 'primary', replication: wal('0/6000000', 3) })
  const [incident] = derive([member('c1', { state: 'stopped' }), promoted, member('c3')], begun('c2'))
  expect(incident?.hint).toBe(
    '"c2" was promoted. To record it as the primary, fail over: "./floe cluster failover c --to c2".',
  )
})

/** A standby whose receiver says that it streams from c1 and has had nothing for so long; reported so long ago. */
const hearing = (name: string, silentMs: number | null, ageMs = 500) =>
  member(name, {
    ageMs,
    replication: wal('0/5000000', 2, {
      receiver: { status: 'streaming', senderHost: 'c1', senderPort: 1, silentMs } as never,
    }),
  })

test('a primary that is not seen lives as long as a standby streams from it', () => {
  expect(derive([member('c1', silent), hearing('c2', 200)])).toEqual([])
  expect(derive([member('c1', silent), member('c2')]).map((i) => i.key)).toEqual(['no-primary:c'])
})

test('an idle primary sends nothing for 30 s, until a standby asks: that is no silence yet', () => {
  expect(derive([member('c1', silent), hearing('c2', 30_200)])).toEqual([])
  // one that still hears it is enough
  expect(derive([member('c1', silent), hearing('c2', 50_000), hearing('c3', 12_000)])).toEqual([])
})

test('a receiver that says "streaming" and has got no answer to its question hears nobody', () => {
  const [incident, ...others] = derive([
    member('c1', silent),
    hearing('c2', 36_000),
    hearing('c3', 35_000, 1_000),
  ])
  expect(others).toEqual([])
  expect(incident).toMatchObject({ key: 'no-primary:c', severity: 'critical', instanceId: 'c1' })
  expect(incident?.title).toBe('cluster "c" has no primary that answers')
  expect(incident?.detail).toBe(
    'Host "h-c1" of its primary "c1" does not answer, and no standby receives anything from it. Whether it still accepts writes is unknown.',
  )
  expect(incident?.hint).toContain('./floe cluster failover c --to c2')
})

test('how long silence has to last can be told, for tests of it', () => {
  const seen = cluster([member('c1', silent), hearing('c2', 12_000)])
  expect(deriveClusterIncidents(seen)).toEqual([])
  expect(deriveClusterIncidents(seen, { unheardMs: 11_000 }).map((i) => i.key)).toEqual(['no-primary:c'])
})

test('what a standby heard is as old as its report, and no clock that was set back makes it younger', () => {
  const open = (follower: ClusterMember) => derive([member('c1', silent), follower]).length
  expect(open(hearing('c2', 20_000, 4_000))).toBe(0)
  expect(open(hearing('c2', 32_000, 4_000))).toBe(1)
  expect(open(hearing('c2', -3_600_000))).toBe(1)
  expect(open(hearing('c2', null))).toBe(1)
})

test('a primary that a person stopped, and an instance of its own, need nobody', () => {
  const stopped = member('c1', { state: 'stopped', intent: 'stopped' })
  expect(derive([stopped, member('c2')])).toEqual([])
  expect(derive([stopped, member('c2')], begun('c2')).map((i) => i.key)).toEqual(['no-primary:c'])
  expect(derive([member('c1', { state: 'crashed' })])).toEqual([])
})

test('a standby that follows nobody is told of with what its engine says', () => {
  const why = 'could not connect to the primary server'
  const [incident, ...others] = derive([member('c1', streaming()), member('c2', { whyNotStreaming: why })])
  expect(others).toEqual([])
  expect(incident).toMatchObject({ key: 'standby-not-streaming:c2', severity: 'warning', instanceId: 'c2' })
  expect(incident?.detail).toBe(`It is not connected to the primary. Its log: ${why}`)
  expect(incident?.hint).toContain('./floe standby rejoin c2')
})

test('a standby that catches up, is fenced, stopped or silent is no such incident', () => {
  const behind = wal('0/5000000', 2, {
    standbys: [{ applicationName: 'c2', state: 'catchup' }] as never,
  })
  expect(derive([member('c1', { replication: behind }), member('c2')])).toEqual([])
  for (const more of [{ memberRole: 'fenced' }, { state: 'stopped' }, silent, { role: 'primary' }])
    expect(derive([member('c1', streaming()), member('c2', more as never)])).toEqual([])
})

test('a standby with WAL that its primary never had has diverged, also while nobody is the primary', () => {
  const parted = member('c2', { replication: wal('0/3000180', 1) })
  const [incident, ...others] = derive([member('c1', streaming()), parted])
  expect(others).toEqual([])
  expect(incident).toMatchObject({ key: 'diverged:c2', severity: 'critical', instanceId: 'c2' })
  expect(incident?.detail).toContain('diverged at 0/3000000')
  expect(derive([member('c1', { state: 'crashed' }), parted]).map((i) => i.key)).toEqual([
    'no-primary:c',
    'diverged:c2',
  ])
})

test('while nobody at all is heard, it is the hosts that are away', () => {
  expect(derive([member('c1', silent), member('c2', silent)])).toEqual([])
})

test('a primary that does not answer its agent has not gone while a standby streams from it', () => {
  const noPrimary = (follower: ClusterMember) =>
    derive([member('c1', { role: null }), follower]).filter((i) => i.key === 'no-primary:c')
  expect(noPrimary(hearing('c2', 200))).toEqual([])
  for (const follower of [member('c2'), hearing('c2', 40_000)])
    expect(noPrimary(follower)).toMatchObject([{ title: 'cluster "c" has no primary that answers' }])
})

test('who was stopped by a person once and is fenced since was not stopped by a person', () => {
  const fenced = { at: 1, reason: 'another member took over' }
  const gone = member('c1', { intent: 'stopped', state: 'stopped', role: null })
  expect(derive([gone, member('c2')])).toEqual([])
  expect(derive([{ ...gone, fenced }, member('c2')]).map((i) => i.key.split(':')[0])).toEqual(['no-primary'])
})

test('by a record that is in doubt nobody is called the primary or none; that none is seen at all is told', () => {
  const doubted = (members: ClusterMember[]) => deriveClusterIncidents(cluster(members), { inDoubt: true })
  const fenced = { at: 0, reason: 'another member took over' }
  const former = member('c1', { state: 'stopped', role: null, fenced })
  expect(doubted([former, member('c2', { role: 'primary' })])).toEqual([])
  expect(doubted([former, member('c2')])).toMatchObject([
    { key: 'no-primary:c', hint: expect.stringContaining('accept-restored') },
  ])
  expect(doubted([member('c1', silent), member('c2')])[0]?.detail).toContain('Unreachable: "c1".')
  expect(doubted([member('c1', silent), member('c2', silent)])).toEqual([])
  // nor what its standbys do
  expect(doubted([member('c1', streaming()), member('c2')])).toEqual([])
})
