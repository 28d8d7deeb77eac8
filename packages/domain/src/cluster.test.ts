import { describe, expect, test } from 'vitest'
import { type ClusterMember, type ClusterObserved, commitsWait, judgeCandidates } from './cluster'
import { clusterConnectionForms } from './cluster-connection'
import type { ClusterHoldings } from './holdings/record'
import type { Lsn } from './lsn'
import { slotNameOf } from './member-role'
import {
  afterRoleChange,
  exactBytes,
  lsnDistance,
  type SynchronousStandbys,
  synchronousStandbyNames,
  withoutMember,
} from './replication'
import { memberId as id, observedMember as member } from './testing/observed-member'

const streaming = (n: number, syncState = 'async') => ({
  applicationName: `one-${n}`,
  pid: n,
  clientAddress: null,
  state: 'streaming',
  sentLsn: null,
  writtenLsn: null,
  flushedLsn: null,
  replayedLsn: null,
  writeLagMs: null,
  flushLagMs: null,
  replayLagMs: null,
  syncState,
})
function cluster(members: ClusterMember[], more: Partial<ClusterObserved> = {}): ClusterObserved {
  const primary = members[0]
  if (primary?.replication)
    primary.replication = {
      ...primary.replication,
      standbys: members.slice(1).map((_, i) => streaming(i + 2)),
    }
  return {
    clusterId: id(9) as never,
    name: 'one',
    control: 'agent',
    primaryInstanceId: id(1),
    synchronous: null,
    commitMode: 'on',
    members,
    holdings: holdings(more.synchronous ?? null),
    ...more,
  }
}
/** As after the first report of a primary on timeline 1, with nothing on its way. */
const holdings = (sync: SynchronousStandbys | null): ClusterHoldings => ({
  timeline: { timeline: 1, ancestors: [] },
  begun: [{ timeline: 1, begin: '0/0' as Lsn }],
  explained: 0,
  promotions: [],
  rules: [sync && { count: sync.count, instanceIds: sync.instanceIds }],
  weaker: [],
  floor: false,
})
const dead = (endLsn: string) => member(1, endLsn, { state: 'crashed', role: null })
const any1 = { method: 'any' as const, count: 1, instanceIds: [id(2), id(3)], strict: false }

test('a lag is told to the byte, however small, and never refuses a switchover by itself', () => {
  const [c] = judgeCandidates(cluster([member(1, '0/3000001'), member(2, '0/3000000')]), 'switchover')
  expect(c).toMatchObject({ lagBytes: 1, expectedLossBytes: 0, blockers: [] })
  expect(exactBytes(1)).toBe('1 byte')
  expect(exactBytes(1234567)).toBe('1,234,567 bytes')
  expect(lsnDistance('1/0', '2/1')).toBe(4294967297)
})

test('each candidate carries its own blocker, and the best comes first', () => {
  const members = [
    member(1, '0/3000000'),
    member(2, '0/3000000', { state: 'stopped' }),
    member(3, '0/2000000'),
    member(4, '0/3000000', { hostState: 'offline', state: 'unknown' }),
  ]
  const judged = judgeCandidates(cluster(members), 'switchover')
  expect(judged.map((c) => [c.name, c.blockers[0]?.code])).toEqual([
    ['one-3', undefined],
    ['one-2', 'candidate.not_running'],
    ['one-4', 'candidate.host_silent'],
  ])
})

test('a standby takes over only where it is one, replays, is a copy of the primary and streams from it', () => {
  const codes = (
    candidate: ClusterMember,
    kind: 'switchover' | 'failover',
    primary = member(1, '0/3000000'),
  ) => judgeCandidates(cluster([primary, candidate]), kind)[0]?.blockers.map((b) => b.code)
  const standby = (more: Partial<ClusterMember> = {}) => member(2, '0/3000000', more)
  for (const kind of ['switchover', 'failover'] as const) {
    const primary = kind === 'switchover' ? undefined : dead('0/3000000')
    expect(codes(standby(), kind, primary)).toEqual([])
    expect(codes(standby({ role: 'primary' }), kind, primary)).toContain('candidate.not_standby')
    expect(codes(standby({ systemIdentifier: '2' }), kind, primary)).toContain('candidate.other_system')
    const { replication } = standby()
    const paused = replication && { ...replication, replayPaused: true }
    expect(codes(standby({ replication: paused }), kind, primary)).toContain('candidate.replay_paused')
  }
  // by the name that it streams under
  expect(codes(standby({ name: 'one-9' }), 'switchover')).toEqual(['candidate.not_streaming'])
})

test('a switchover needs a primary that runs', () => {
  const [c] = judgeCandidates(cluster([dead('0/3000000'), member(2, '0/3000000')]), 'switchover')
  expect(c?.blockers.map((b) => b.code)).toContain('switchover.primary_down')
})

test('an asynchronous failover states the loss in bytes, and an unknown one as unknown', () => {
  const [known] = judgeCandidates(cluster([dead('0/3000010'), member(2, '0/3000000')]), 'failover')
  expect(known).toMatchObject({ lossless: false, expectedLossBytes: 16, blockers: [] })
  const gone = member(1, '0/0', { state: 'unknown', replication: null })
  const [unknown] = judgeCandidates(cluster([gone, member(2, '0/3000000')]), 'failover')
  expect(unknown).toMatchObject({ lossless: false, expectedLossBytes: null })
})

test('in synchronous mode only a standby that holds every acknowledged commit is let through', () => {
  const both = cluster([dead('0/3000010'), member(2, '0/3000008'), member(3, '0/3000010')], {
    synchronous: any1,
  })
  expect(judgeCandidates(both, 'failover').map((c) => [c.name, c.lossless, c.blockers[0]?.code])).toEqual([
    ['one-3', true, undefined],
    ['one-2', false, 'candidate.behind'],
  ])
  // of ANY 1 of two both have to be seen: the acknowledged commit may be on the other one
  const oneSeen = cluster(
    [
      { ...dead('0/3000010'), replication: null },
      member(2, '0/3000010'),
      member(3, '0/3000010', { hostState: 'offline', state: 'unknown' }),
    ],
    { synchronous: any1 },
  )
  expect(judgeCandidates(oneSeen, 'failover')[0]?.blockers[0]?.code).toBe('candidate.quorum_unseen')
  // of ANY 2 of two one is enough: both have it
  const strong = { ...oneSeen, holdings: holdings({ ...any1, count: 2 }) }
  expect(judgeCandidates(strong, 'failover')[0]).toMatchObject({
    name: 'one-2',
    lossless: true,
    blockers: [],
  })
  // who is not among them may take over where it holds as much as they
  const outside = cluster([dead('0/3000010'), member(2, '0/3000010'), member(4, '0/3000008')], {
    synchronous: { ...any1, instanceIds: [id(2)] },
  })
  expect(judgeCandidates(outside, 'failover').map((c) => [c.name, c.blockers[0]?.code])).toEqual([
    ['one-2', undefined],
    ['one-4', 'candidate.behind'],
  ])
})

test('a standby that stayed on the history of before is diverged, however far it goes (F1)', () => {
  const two = { timeline: 2, ancestors: [{ timeline: 1, end: '0/3000000' as Lsn }] }
  const on = (n: number, end: string, more: Partial<ClusterMember>) => {
    const m = member(n, end, more)
    return { ...m, replication: m.replication && { ...m.replication, ...two } }
  }
  const c = cluster(
    [on(1, '0/3000100', { state: 'crashed', role: null }), on(2, '0/3000100', {}), member(3, '0/9000000')],
    { synchronous: { ...any1, instanceIds: [id(2), id(3)] } },
  )
  c.holdings = { ...holdings(any1), timeline: two }
  expect(
    judgeCandidates(c, 'failover').map((j) => [j.name, j.lossless, j.lagBytes, j.blockers[0]?.code]),
  ).toEqual([
    ['one-2', true, 0, undefined],
    ['one-3', false, null, 'candidate.diverged'],
  ])
})

const MEASURED_LATER =
  'How much WAL "one-3" holds is measured during the failover, before a standby is promoted.'

test('a standby that does not say where its WAL ends is measured first, and takes no part in a forecast (F2)', () => {
  const silent = member(3, '0/3000000')
  silent.replication = silent.replication && { ...silent.replication, endLsn: null }
  const c = cluster([dead('0/3000010'), member(2, '0/3000000'), silent], { synchronous: any1 })
  c.members[0] = { ...(c.members[0] as ClusterMember), replication: null }
  expect(judgeCandidates(c, 'failover').map((j) => [j.name, j.expectedLossBytes, j.notes])).toEqual([
    ['one-2', null, [MEASURED_LATER]],
    ['one-3', null, [MEASURED_LATER]],
  ])
})

test('a promotion that is not settled makes its member the possible primary (F3)', () => {
  const c = cluster([dead('0/3000000'), member(2, '0/3000000'), member(3, '0/3000000')])
  c.holdings = {
    ...holdings(null),
    promotions: [{ instanceId: id(3), operationId: id(8), step: 'promote', attempt: 1, from: null }],
  }
  const judged = judgeCandidates(c, 'failover').find((j) => j.name === 'one-2')
  expect(judged).toMatchObject({ lossless: false, expectedLossBytes: null })
  expect(judged?.blockers.map((b) => b.code)).toEqual(['promotion.unsettled'])
  expect(judgeCandidates(c, 'switchover')[0]?.blockers.map((b) => b.code)).toContain('promotion.unsettled')
})

test('a role that commits locally is named, and there is no proof (F6a)', () => {
  const c = cluster([dead('0/0'), member(2, '0/3000000'), member(3, '0/3000000')], { synchronous: any1 })
  c.members[0] = { ...(c.members[0] as ClusterMember), replication: null }
  const weaker = [{ database: null, role: 'batch', commitMode: 'local' }]
  c.holdings = { ...holdings(any1), weaker }
  const [judged] = judgeCandidates(c, 'failover')
  expect(judged).toMatchObject({ lossless: false })
  expect(judged?.blockers[0]).toMatchObject({
    code: 'commits.weaker',
    message: expect.stringContaining('"batch"'),
  })
})

test('a level that waits for no standby makes a set of synchronous standbys worth nothing', () => {
  const local = cluster([dead('0/3000010'), member(2, '0/3000000')], {
    synchronous: any1,
    commitMode: 'local',
  })
  expect(judgeCandidates(local, 'failover')[0]).toMatchObject({ lossless: false, expectedLossBytes: 16 })
})

test('a fenced member is no candidate, whatever it holds', () => {
  const fenced = member(2, '0/9000000', { memberRole: 'fenced', state: 'stopped' })
  const [c] = judgeCandidates(cluster([member(1, '0/3000000'), fenced]), 'failover')
  expect(c?.blockers[0]?.code).toBe('candidate.fenced')
})

test('commits wait when fewer are connected than asked for, and only then', () => {
  const c = cluster([member(1, '0/3000000'), member(2, '0/3000000')], { synchronous: any1 })
  const r = c.members[0]?.replication as NonNullable<ClusterMember['replication']>
  r.synchronousStandbyNames = 'ANY 1 ("one-2", "one-3")'
  expect(commitsWait(c)).toEqual({ connected: 0, asked: 1, waiting: 0 })
  r.standbys = [streaming(2, 'quorum')]
  expect(commitsWait(c)).toBeNull()
  r.standbys = []
  r.synchronousCommit = 'local'
  expect(commitsWait(c)).toBeNull()
})

test('names are quoted, a change of roles keeps the set, and a member that leaves takes its place with it', () => {
  expect(synchronousStandbyNames({ method: 'first', count: 3 }, ['a-1', 'b"c'])).toBe(
    'FIRST 2 ("a-1", "b""c")',
  )
  expect(synchronousStandbyNames(null, ['a'])).toBe('')
  expect(synchronousStandbyNames({ method: 'any', count: 1 }, [])).toBe('')
  expect(afterRoleChange(any1, id(2), id(1))?.instanceIds).toEqual([id(1), id(3)])
  expect(afterRoleChange(any1, id(4), id(1))?.instanceIds).toEqual([id(2), id(3)])
  expect(withoutMember({ ...any1, count: 2 }, id(2))).toMatchObject({ count: 1, instanceIds: [id(3)] })
  expect(withoutMember({ ...any1, instanceIds: [id(2)] }, id(2))).toBeNull()
  expect(slotNameOf('a-b')).toBe('floe_a_b')
})

test('the connection names every member and says which one it wants', () => {
  const target = {
    hosts: [
      { host: '10.0.0.1', port: 5500 },
      { host: '::1', port: 5501 },
    ],
    user: 'postgres',
    database: 'postgres',
  }
  const write = clusterConnectionForms(target, 'primary')
  expect(write.uri).toBe(
    'postgresql://postgres@10.0.0.1:5500,[::1]:5501/postgres?target_session_attrs=read-write',
  )
  expect(write.keywords).toBe(
    'host=10.0.0.1,::1 port=5500,5501 user=postgres dbname=postgres target_session_attrs=read-write',
  )
  expect(write.jdbc).toContain('targetServerType=primary')
  const read = clusterConnectionForms(target, 'reads')
  expect(read.uri).toContain('prefer-standby&load_balance_hosts=random')
  expect(read.go).not.toContain('load_balance_hosts')
  const tls = clusterConnectionForms({ ...target, tls: true }, 'primary')
  for (const form of Object.values(tls)) expect(form).toMatch(/sslmode=require|ssl: \{/)
  expect(tls.psql).toContain('target_session_attrs=read-write&sslmode=require&channel_binding=require')
})

describe('what node-postgres is given', () => {
  const hosts = [5500, 5501, 5502].map((port) => ({ host: '10.0.0.1', port }))
  const forms = (purpose: 'primary' | 'reads') =>
    clusterConnectionForms({ hosts, user: "o'neill", database: 'postgres' }, purpose).nodePostgres

  /** Runs it as it is pasted, against members by port; one that is not named does not answer. */
  async function run(purpose: 'primary' | 'reads', members: Record<number, 'primary' | 'standby'>) {
    const open = new Set<number>()
    class Client {
      constructor(readonly options: { port: number; user: string }) {}
      async connect() {
        if (!members[this.options.port]) throw new Error('connection refused')
        open.add(this.options.port)
      }
      async query() {
        return { rows: [{ standby: members[this.options.port] === 'standby' }] }
      }
      async end() {
        open.delete(this.options.port)
      }
    }
    const pasted = forms(purpose).replace(/^import pg.*$/m, '')
    const client = (await new Function('pg', `${pasted}; return connect()`)({ Client })) as Client
    expect([...open], 'nothing but what is given back stays open').toEqual([client.options.port])
    expect(client.options.user).toBe("o'neill")
    return client.options.port
  }

  test('for writes it is the primary, and nothing else', async () => {
    expect(await run('primary', { 5500: 'standby', 5501: 'primary' })).toBe(5501)
    await expect(run('primary', { 5500: 'standby' })).rejects.toThrow('the primary does not answer')
  })

  test('for reads it is a standby, and the primary where none is up', async () => {
    expect(await run('reads', { 5500: 'primary', 5502: 'standby' })).toBe(5502)
    expect(await run('reads', { 5501: 'primary' })).toBe(5501)
    await expect(run('reads', {})).rejects.toThrow('no member answers')
  })
})
