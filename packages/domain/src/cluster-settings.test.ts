import { expect, test } from 'vitest'
import type { ClusterObserved } from './cluster'
import {
  clusterSettingBlockers,
  clusterSettingFaults,
  compareMembers,
  type MemberCheck,
  membersOfOneHost,
  ofWholeCluster,
  planSettingPhases,
  reverseChecks,
  type SettingPhase,
  settingOrder,
  whyOfOneMember,
} from './cluster-settings'
import type { SettingImpact } from './setting'

const ids = ['1', '2', '3'].map((n) => `0000000${n}-0000-4000-8000-000000000000`)

test('a setting that standbys may not have smaller grows on them first and shrinks on the primary first', () => {
  expect(settingOrder('max_connections', 100, 200)).toBe('standbys-first')
  expect(settingOrder('MAX_CONNECTIONS', 200, 100)).toBe('primary-first')
  expect(settingOrder('max_connections', 100, 100)).toBe('standbys-first')
  // what an engine does not start with is found out where nobody writes
  expect(settingOrder('shared_buffers', 2, 1)).toBe('standbys-first')
})

type Numbers = Record<string, [now: number, wanted: number]>
const member = (n: number, numbers: Numbers, impact: SettingImpact = 'restart') => ({
  instanceId: ids[n] as string,
  name: `m${n}`,
  primary: n === 0,
  changes: Object.entries(numbers).map(([name, [, wanted]]) => ({ name, value: String(wanted) })),
  checked: Object.entries(numbers).map(([name, [now, wanted]]) => ({
    name,
    impact,
    oldNumber: now,
    newNumber: wanted,
  })),
  before: Object.fromEntries(Object.entries(numbers).map(([name, [now]]) => [name, String(now)])),
})
const shape = (phases: SettingPhase[]) =>
  phases.map((p) => [
    p.phase,
    ...p.members.map((m) => `${m.name}: ${m.changes.map((c) => `${c.name}=${c.value}`).join(' ')}`),
  ])

test('raised: the standbys one after the other, then the primary', () => {
  expect(shape(planSettingPhases([0, 1, 2].map((n) => member(n, { max_connections: [100, 200] }))))).toEqual([
    ['standbys', 'm1: max_connections=200', 'm2: max_connections=200'],
    ['primary', 'm0: max_connections=200'],
  ])
})

test('lowered: the primary, then each standby, which first has to have replayed that', () => {
  const phases = planSettingPhases([0, 1, 2].map((n) => member(n, { max_connections: [200, 100] })))
  expect(shape(phases)).toEqual([
    ['primary', 'm0: max_connections=100'],
    ['replayed', 'm1: max_connections=100', 'm2: max_connections=100'],
  ])
  expect(phases[1]?.members[0]).toMatchObject({ atMost: { max_connections: 100 }, restart: true })
  expect(phases[0]?.members[0]).toMatchObject({ atMost: {}, restart: true })
})

test('one raised, one lowered, and one without an order: each in its place', () => {
  const wanted: Numbers = {
    max_connections: [100, 200],
    max_wal_senders: [20, 10],
    shared_buffers: [1, 2],
  }
  expect(shape(planSettingPhases([0, 1].map((n) => member(n, wanted))))).toEqual([
    ['standbys', 'm1: max_connections=200 shared_buffers=2'],
    ['primary', 'm0: max_connections=200 max_wal_senders=10 shared_buffers=2'],
    ['replayed', 'm1: max_wal_senders=10'],
  ])
})

test('what a reload brings restarts nobody', () => {
  const phases = planSettingPhases([0, 1].map((n) => member(n, { work_mem: [1, 2] }, 'reload')))
  expect(phases.flatMap((p) => p.members).map((m) => m.restart)).toEqual([false, false])
})

/** A cluster as PostgreSQL sees it: a standby that is smaller than what it may have to replay has stopped. */
class Model {
  readonly values: Record<string, Record<string, number>>
  /** What WAL that a standby has not replayed past may ask of it. */
  readonly asked: Record<string, Record<string, number>>
  readonly names: string[]
  constructor(members: readonly MemberCheck[]) {
    this.values = Object.fromEntries(
      members.map((m) => [m.name, Object.fromEntries(m.checked.map((c) => [c.name, c.oldNumber as number]))]),
    )
    this.names = members.filter((m) => !m.primary).map((m) => m.name)
    this.asked = Object.fromEntries(this.names.map((n) => [n, { ...this.values.m0 }]))
  }
  *walk(phases: SettingPhase[]): Generator<string> {
    for (const { phase, members } of phases)
      for (const turn of members) {
        for (const [name, most] of Object.entries(turn.atMost)) {
          // it would wait for ever for what the primary still asks
          expect(most).toBeGreaterThanOrEqual(this.values.m0?.[name] as number)
          ;(this.asked[turn.name] as Record<string, number>)[name] = this.values.m0?.[name] as number
        }
        for (const { name, value } of turn.changes) {
          ;(this.values[turn.name] as Record<string, number>)[name] = Number(value)
          if (turn.name === 'm0')
            for (const s of this.names) {
              const asked = this.asked[s] as Record<string, number>
              asked[name] = Math.max(asked[name] as number, Number(value))
            }
        }
        this.hold()
        yield `${phase} ${turn.name}`
      }
  }
  hold() {
    for (const s of this.names)
      for (const [name, asked] of Object.entries(this.asked[s] as Record<string, number>))
        expect(this.values[s]?.[name], `${name} of ${s}`).toBeGreaterThanOrEqual(asked)
  }
}

test('wherever a change or its way back is interrupted, no standby is smaller than what it may have to replay', () => {
  const sizes = [1, 2, 3]
  let walked = 0
  for (const primaryNow of sizes)
    for (const standbyNow of sizes.filter((n) => n >= primaryNow))
      for (const primaryWanted of sizes)
        for (const standbyWanted of sizes.filter((n) => n >= primaryWanted)) {
          const members = [
            member(0, { max_connections: [primaryNow, primaryWanted], max_wal_senders: [3, 2] }),
            member(1, { max_connections: [standbyNow, standbyWanted], max_wal_senders: [3, 2] }),
            member(2, { max_connections: [3, primaryWanted], max_wal_senders: [3, 2] }),
          ]
          const turns = planSettingPhases(members).flatMap((p) => p.members).length
          for (let until = 0; until <= turns; until++) {
            const model = new Model(members)
            const forth = model.walk(planSettingPhases(members))
            for (let i = 0; i < until; i++) forth.next()
            for (const _ of model.walk(planSettingPhases(reverseChecks(members)))) walked++
            for (const m of members)
              expect(model.values[m.name]).toEqual(
                Object.fromEntries(m.checked.map((c) => [c.name, c.oldNumber])),
              )
          }
        }
  expect(walked).toBeGreaterThan(500)
})

test('the way back takes a line away that was not there', () => {
  const [back] = reverseChecks([
    { ...member(0, { work_mem: [1, 2], fsync: [1, 0] }), before: { fsync: 'on' } },
  ])
  expect(back?.changes).toEqual([
    { name: 'work_mem', value: null },
    { name: 'fsync', value: 'on' },
  ])
})

test('a standby below its primary, too few senders and an order without restarts are refused', () => {
  const codes = (members: MemberCheck[], restart = true) =>
    clusterSettingFaults(members, restart).map((f) => f.code)
  expect(
    codes([member(0, { max_connections: [100, 200] }), member(1, { max_connections: [100, 150] })]),
  ).toEqual(['setting.below_primary'])
  expect(codes([0, 1, 2].map((n) => member(n, { max_wal_senders: [10, 1] })))).toEqual([
    'setting.too_few_senders',
  ])
  expect(
    codes(
      [0, 1].map((n) => member(n, { max_connections: [100, 200] })),
      false,
    ),
  ).toEqual(['setting.order_needs_restart'])
  // a cluster of one has no order
  expect(codes([member(0, { max_connections: [100, 200] })], false)).toEqual([])
  expect(
    codes(
      [0, 1].map((n) => member(n, { shared_buffers: [1, 2] })),
      false,
    ),
  ).toEqual([])
})

test('one member alone does not change what the cluster orders', () => {
  const names = ['work_mem', 'Max_Connections']
  expect(ofWholeCluster(names, { name: 'shop', members: 1 })).toBeNull()
  expect(ofWholeCluster(['work_mem'], { name: 'shop', members: 2 })).toBeNull()
  expect(ofWholeCluster(names, { name: 'shop', members: 2 })).toMatchObject({
    code: 'setting.of_cluster',
    hint: expect.stringContaining('./floe setting set --cluster shop max_connections=…'),
  })
})

const cluster = (change: Partial<Record<number, object>> = {}, standbyState = 'streaming') =>
  ({
    clusterId: ids[0],
    name: 'shop',
    primaryInstanceId: ids[0],
    members: [0, 1].map((n) => ({
      instanceId: ids[n],
      name: `m${n}`,
      hostId: `h${n}`,
      hostName: `h${n}`,
      hostState: 'online',
      memberRole: n === 0 ? 'primary' : 'standby',
      state: 'running',
      because: null,
      fenced: null,
      replication:
        n === 0
          ? { standbys: [{ applicationName: 'm1', state: standbyState }] }
          : { replayPaused: false, standbys: [] },
      ...change[n],
    })),
  }) as unknown as ClusterObserved
const asked = (name: string, members = [0, 1]) =>
  members.map((n) => ({ instanceId: ids[n] as never, changes: [{ name, value: '1' }] }))

test('every member has to be there, and for an ordered setting every standby has to replay', () => {
  const codes = (c: ClusterObserved, name = 'max_connections', members?: number[]) =>
    clusterSettingBlockers(c, asked(name, members)).map((f) => f.code)
  expect(codes(cluster())).toEqual([])
  expect(codes(cluster({ 1: { state: 'stopped' } }))).toEqual(['member.not_running'])
  expect(codes(cluster({ 1: { hostState: 'offline' } }))).toEqual(['member.host_silent'])
  expect(codes(cluster({ 1: { hostState: 'stale' } }))).toEqual(['member.host_stale'])
  expect(codes(cluster({ 1: { hostState: 'stale', state: 'unknown' } }))).toEqual(['member.host_silent'])
  expect(codes(cluster({ 1: { memberRole: 'fenced' } }))).toEqual(['member.fenced'])
  expect(codes(cluster({}, 'catchup'))).toEqual(['member.not_streaming'])
  expect(codes(cluster({}, 'catchup'), 'work_mem')).toEqual([])
  expect(codes(cluster({ 1: { replication: { replayPaused: true, standbys: [] } } }))).toEqual([
    'member.replay_paused',
  ])
  expect(codes(cluster(), 'work_mem', [0])).toEqual(['cluster.member_left_out'])
  expect(codes(cluster(), 'work_mem', [0, 1, 2])).toEqual(['cluster.no_member'])
  expect(codes(cluster(), 'listen_addresses')).toEqual(['setting.of_one_member'])
  // of a cluster of one it is the cluster's own
  const { members, ...more } = cluster()
  expect(codes({ ...more, members: members.slice(0, 1) }, 'listen_addresses', [0])).toEqual([])
})

test('members get one shared port where each has a host of its own, and it is closed on all of them anywhere', () => {
  const codes = (c: ClusterObserved, value: string | null) =>
    clusterSettingBlockers(
      c,
      [0, 1].map((n) => ({ instanceId: ids[n] as never, changes: [{ name: 'polar_ss_port', value }] })),
    ).map((f) => f.code)
  const together = cluster({ 1: { hostId: 'h0' } })
  expect(codes(cluster(), '6500')).toEqual([])
  expect(codes(together, '6500')).toEqual(['setting.of_one_member'])
  expect(codes(together, '0')).toEqual([])
  expect(codes(together, null)).toEqual([])
  expect(membersOfOneHost(cluster().members)).toBeNull()
  expect(membersOfOneHost(together.members)?.map((m) => m.name)).toEqual(['m0', 'm1'])
  expect(whyOfOneMember('Polar_SS_Port', together.members)).toMatch(/share a host/)
  expect(whyOfOneMember('polar_ss_port', cluster().members)).toBeNull()
  expect(whyOfOneMember('listen_addresses', cluster().members)).toMatch(/its own host/)
  expect(whyOfOneMember('listen_addresses', together.members.slice(0, 1))).toBeNull()
})

test('members are compared: who differs, and which standby is too small', () => {
  const values = [
    { primary: true, name: 'm0', value: '200' },
    { primary: false, name: 'm1', value: '100' },
    { primary: false, name: 'm2', value: '300' },
  ]
  expect(compareMembers(values, 'max_connections')).toEqual({ differs: true, tooSmallOn: ['m1'] })
  expect(compareMembers(values, 'work_mem')).toEqual({ differs: true, tooSmallOn: [] })
})
