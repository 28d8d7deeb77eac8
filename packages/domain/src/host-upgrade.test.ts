import { describe, expect, test } from 'vitest'
import type { ClusterMember, ClusterObserved } from './cluster'
import { planHostUpgrade } from './host-upgrade'
import { operationRecords } from './operations'
import { memberId as id, observedMember } from './testing/observed-member'

const older = { build: 'release-1', running: 'release-1', current: false }
const current = { build: 'release-2', running: 'release-2', current: true }
const onOne = { hostId: id(1) as never, hostName: 'h1' }

const member = (n: number, more: Partial<ClusterMember> = {}) =>
  observedMember(n, '0/3000000', { engine: older, ...more })

function cluster(members: ClusterMember[], more: Partial<ClusterObserved> = {}): ClusterObserved {
  const [primary, ...standbys] = members
  if (primary?.replication)
    primary.replication.standbys = standbys.map(({ name }, n) => ({
      ...{ applicationName: name, pid: n, clientAddress: null, state: 'streaming', syncState: 'async' },
      ...{ sentLsn: null, writtenLsn: null, flushedLsn: null, replayedLsn: null },
      ...{ writeLagMs: null, flushLagMs: null, replayLagMs: null },
    }))
  return {
    ...{ clusterId: id(9) as never, name: 'one', control: 'agent', primaryInstanceId: id(1) },
    ...{ synchronous: null, commitMode: 'on', members },
    ...more,
  }
}
const host = { hostId: id(1), name: 'h1', state: 'online', build: 'release-2' } as const
const planned = (...clusters: ClusterObserved[]) => planHostUpgrade(host, clusters)
const stepsOf = (...clusters: ClusterObserved[]) =>
  planned(...clusters).plan.clusters.flatMap(({ steps }) => steps.map((s) => `${s.action} ${s.member}`))
const textOf = (of: ClusterObserved) => planned(of).plan.clusters[0]?.steps[0]?.text

describe('the order', () => {
  test('of a cluster: standbys of the host, a switchover to another host, the former primary', () => {
    const { plan, upgrades } = planned(cluster([member(1), member(2, onOne), member(3)]))
    expect(plan.clusters[0]?.steps.map((s) => `${s.action} ${s.member}`)).toEqual([
      'restart-standby one-2',
      'switchover one-3',
      'restart-former-primary one',
    ])
    const input = operationRecords['upgrade-members'].input.parse(upgrades[0]?.input)
    expect(input).toMatchObject({
      ...{ instanceId: id(3), build: 'release-2', members: ['one-2', 'one'], primary: 'one' },
      switchover: true,
    })
  })

  test('a standby of the same host takes over where no other one can, and only after its own restart', () => {
    expect(stepsOf(cluster([member(1), member(2, onOne)]))).toEqual([
      'restart-standby one-2',
      'switchover one-2',
      'restart-former-primary one',
    ])
  })

  test('a primary that nobody can take over from is restarted, and the plan says why and what clients notice', () => {
    expect(stepsOf(cluster([member(1)]))).toEqual(['restart-primary one'])
    expect(textOf(cluster([member(1)]))).toContain('Its clients are disconnected')
    const paused = member(2)
    if (paused.replication) paused.replication.replayPaused = true
    expect(textOf(cluster([member(1), paused]))).toContain('"one-2": replay is paused')
  })

  test('where the primary is elsewhere only the standbys are restarted', () => {
    const [one, two] = [member(1, { hostId: id(3) as never, engine: current }), member(2, onOne)]
    expect(stepsOf(cluster([one, two]))).toEqual(['restart-standby one-2'])
    expect(planned(cluster([one, two])).upgrades[0]?.input).toMatchObject({
      ...{ instanceId: id(1), members: ['one-2'], switchover: false },
    })
  })

  test('of clusters: by name; those that run on the installed engine are only named', () => {
    const named = (name: string, engine: ClusterMember['engine']) =>
      cluster([member(1, { name, engine })], { name })
    const all = [named('c', older), named('a', older), named('b', current)]
    expect(stepsOf(...all)).toEqual(['restart-primary a', 'restart-primary c'])
    expect(planned(...all).plan.current).toEqual(['b'])
  })
})

test('commits that would wait for a standby are foretold', () => {
  const synchronous = (ids: number[]) => ({
    synchronous: { method: 'any' as const, count: 1, instanceIds: ids.map(id), strict: false },
  })
  const members = () => [member(1, { hostId: id(4) as never }), member(2, onOne), member(3)]
  expect(textOf(cluster(members()))).toContain('Clients do not notice.')
  expect(textOf(cluster(members(), synchronous([2])))).toContain('Commits wait until it streams again.')
  expect(textOf(cluster(members(), synchronous([2, 3])))).toContain('confirmed by the other synchronous')
})

test('what cannot be moved is left, with the reason, and alone orders nothing', () => {
  const left = (more: Partial<ClusterMember>) => {
    const { plan, upgrades } = planned(cluster([member(1, more)]))
    expect(plan.clusters[0]?.steps).toEqual([])
    expect(upgrades[0]?.input).toBeNull()
    return plan.clusters[0]?.left[0]?.why
  }
  expect(left({ state: 'stopped' })).toContain('it is stopped')
  expect(left({ engine: null })).toContain('does not report')
  expect(left({ fenced: { at: 1, reason: 'r' } })).toContain('rejoin it first')
  const astray = cluster([member(1, { hostId: id(4) as never }), member(2, onOne)])
  if (astray.members[0]?.replication) astray.members[0].replication.standbys = []
  expect(planned(astray).plan.clusters[0]?.left[0]?.why).toContain('does not follow its primary')
})

test('a cluster that is left out is named, and ordered nothing', () => {
  const { plan, upgrades } = planHostUpgrade(host, [cluster([member(1)])], ['one'])
  expect(plan.clusters[0]).toMatchObject({
    steps: [],
    left: [{ member: 'one', why: 'its cluster is left out' }],
  })
  expect(upgrades[0]?.input).toBeNull()
})

test('a host that is silent, or whose agent is older, has a blocker', () => {
  expect(planHostUpgrade({ ...host, state: 'stale' }, []).plan.blocker?.code).toBe('host.silent')
  const { plan } = planHostUpgrade({ ...host, build: null }, [cluster([member(1, { engine: null })])])
  expect(plan).toMatchObject({ blocker: { code: 'host.older_agent' }, clusters: [] })
})
