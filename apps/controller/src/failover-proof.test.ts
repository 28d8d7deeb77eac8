import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { listIncidents, listRestoredRecords } from '@floe/db'
import { type Candidate, type ClusterMember, type InstanceId, judgeCandidates, Verdict } from '@floe/domain'
import { type ThrowawayHost, ThrowawayNetwork, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type HostsFixture, hostsFixture } from './testing/hosts-fixture'
import { StepGate } from './testing/step-gate'

const missing = ThrowawayNetwork.missing()
vi.setConfig({ testTimeout: 240_000 })

/** What a failover says of a loss, on roads where something is lost: it says so, or does not go on. */
describe.skipIf(missing !== null)(`a failover proves what it says${missing ? ` (${missing})` : ''}`, () => {
  let fixture: HostsFixture
  let gate: StepGate
  let one: string
  const host = (name: string) => fixture.host(Number(name.slice(1)))

  beforeAll(async () => {
    fixture = await hostsFixture({ hosts: 3, instances: 6 })
    gate = await StepGate.install(fixture.db)
    await fixture.start()
    one = await fixture.createInstance('c1')
    for (const n of [2, 3]) await fixture.createStandby(one, `c${n}`, fixture.host(n))
    await fixture.ask(await member('c1'), 'create table ledger (n int primary key)')
  }, 240_000)
  afterAll(async () => {
    await gate?.remove()
    await fixture?.remove()
  }, 60_000)

  const cluster = () => fixture.clusterOf(one)
  const member = (name: string) => fixture.memberOf(one, name)
  const primary = () => fixture.primaryOf(one)
  const candidate = async (name: string) =>
    judgeCandidates(await cluster(), 'failover').find((c) => c.name === name) as Candidate
  const fails = async (kind: 'failover-cluster', input: unknown) =>
    (await fixture.runToEnd(kind, input)).fault
  const synchronous = async (names: string[] | null) => {
    const { clusterId, primaryInstanceId, members } = await cluster()
    const instanceIds = members.filter((m) => names?.includes(m.name)).map((m) => m.instanceId)
    await fixture.carryOut('change-synchronous', {
      clusterId,
      instanceId: primaryInstanceId,
      synchronous: names && { method: 'any', count: 1, instanceIds },
      commitMode: 'on',
    })
    await waitUntil(
      'only that set counts',
      async () => {
        const { holdings } = await cluster()
        return (
          holdings?.rules.length === 1 &&
          holdings.rules[0]?.instanceIds.length === (names?.length || undefined)
        )
      },
      30_000,
    )
  }
  const silent = (name: string) =>
    waitUntil(`${name} is seen silent`, async () => (await member(name)).hostState !== 'online', 60_000)
  const rejoin = async (name: string) => {
    await waitUntil(`${name} answers`, async () => (await member(name)).hostState === 'online', 60_000)
    const input = { instanceId: (await member(name)).instanceId, method: 'clone' }
    // the controller itself works on a cluster whose hosts come back, also just after nobody did
    const operationId = await waitUntil(
      'nobody else works on it',
      () => fixture.submit('rejoin-standby', input),
      60_000,
    )
    await fixture.succeeded(operationId)
  }
  /** The open incident of this key. */
  const incident = (key: string) =>
    waitUntil(
      `incident ${key}`,
      async () => (await listIncidents(fixture.db.pool)).find((i) => i.key === key),
      40_000,
    )
  const insert = async (m: ClusterMember, from: number, to: number) =>
    fixture.ask(m, `insert into ledger select n from generate_series(${from}, ${to}) as n`)

  test('a standby that stayed on the history of before is no candidate, however far its WAL goes (F1)', async () => {
    await synchronous(['c2', 'c3'])
    const [p, x, y] = ['h1', 'h2', 'h3'].map(host) as [ThrowawayHost, ThrowawayHost, ThrowawayHost]
    fixture.net.network.partition(x.network, [p.network, y.network])
    // c3 alone confirms; c2 has nothing of it. Enough that its LSN stays ahead of all that comes later
    await insert(await member('c1'), 1, 600_000)
    fixture.net.network.partition(p.network, ['console'])
    fixture.net.network.partition(y.network, ['console'])
    await silent('c1')
    await silent('c3')
    const { clusterId } = await cluster()
    const order = { clusterId, instanceId: (await member('c2')).instanceId, unreachableHost: 'h1' }
    expect(await fails('failover-cluster', order)).toMatchObject({ code: 'candidate.quorum_unseen' })
    await fixture.carryOut('failover-cluster', { ...order, acceptLoss: 'unknown' })
    for (const { network } of [p, x, y]) fixture.net.network.heal(network)
    await waitUntil('c1 is fenced', async () => (await member('c1')).fenced, 60_000)
    await rejoin('c1')
    // commits wait for c1 now; c3 is a standby that runs, and follows nobody
    const present = await primary()
    expect(present.name).toBe('c2')
    await insert(present, 700_001, 700_600)
    await waitUntil('c3 has answered', async () => (await member('c3')).hostState === 'online', 60_000)
    // and it is told, and named in no set that commits wait for (F10)
    const strayed = await waitUntil(
      'why c3 does not stream is said',
      async () => {
        const m = await member('c3')
        return m.whyNotStreaming ? m : null
      },
      60_000,
    )
    expect((await incident(`diverged:${strayed.instanceId}`)).hint).toContain('./floe standby rejoin c3')
    const { synchronous: listed } = await cluster()
    expect(listed?.instanceIds).toContain(strayed.instanceId)
    expect(await fixture.ask(present, 'show synchronous_standby_names')).toEqual([
      { synchronous_standby_names: 'ANY 1 ("c1")' },
    ])
    await waitUntil(
      'only the present set counts',
      async () => (await cluster()).holdings?.rules.length === 1,
      30_000,
    )
    fixture.net.network.partition(x.network)
    await silent('c2')
    expect((await candidate('c3')).blockers.map((b) => b.code)).toContain('candidate.diverged')
    expect(await candidate('c3')).toMatchObject({ lossless: false, lagBytes: null })
    const again = { clusterId, unreachableHost: 'h2' }
    const c3 = (await member('c3')).instanceId
    expect(await fails('failover-cluster', { ...again, instanceId: c3 })).toMatchObject({
      code: 'candidate.diverged',
    })
    const { result } = await fixture.carryOut('failover-cluster', {
      ...again,
      instanceId: (await member('c1')).instanceId,
    })
    const verdict = Verdict.parse((result as { verdict?: unknown }).verdict)
    expect(verdict).toMatchObject({ kind: 'proven', proof: { candidate: 'c1', covers: 'standbys' } })
    const kept = await fixture.ask(await primary(), 'select count(*)::int as n from ledger where n > 700000')
    expect(kept).toEqual([{ n: 600 }])
    fixture.net.network.heal(x.network)
    await waitUntil('c2 is fenced', async () => (await member('c2')).fenced, 60_000)
    await rejoin('c2')
    await rejoin('c3')
  })

  test('a candidate that is lost at its promotion is the possible primary, and another one is offered within 15 s (F3, F7)', async () => {
    await synchronous(null)
    const former = await primary()
    const promoted = await member('c2')
    const { clusterId } = await cluster()
    await gate.arm(true)
    const operationId = await fixture.submit('switchover-cluster', {
      clusterId,
      instanceId: promoted.instanceId,
    })
    const at = await gate.reach(operationId, 'end', 'promote')
    // c2 is promoted; that answer is lost, and c2 is heard of no more
    fixture.net.network.partition(fixture.host(2).network, ['console'])
    await gate.arm(false)
    await gate.open(operationId, at, true)
    const lostAt = performance.now()
    expect(await fixture.ended(operationId)).toMatchObject({
      state: 'failed',
      fault: { code: 'promote.silent', hint: expect.stringContaining('./floe cluster failover') },
    })
    const offered = await incident(`no-primary:${clusterId}`)
    expect(performance.now() - lostAt).toBeLessThan(15_000)
    expect(offered.detail).toContain('"c2" on host "h2" may have been promoted')
    expect(offered.hint).toContain('--to c3')
    expect((await cluster()).primaryInstanceId).toBe(former.instanceId)
    expect((await cluster()).holdings?.promotions).toMatchObject([{ instanceId: promoted.instanceId }])
    // clients on its side write to it
    const psql = join(process.env.FLOE_TEST_ENGINE_PREFIX ?? '', 'bin/psql')
    const [command, ...args] = fixture.host(2).network.command as [string, ...string[]]
    const { host: address, port } = promoted.connection ?? { host: '', port: 0 }
    const uri = `postgresql://postgres:${fixture.password}@${address}:${port}/postgres`
    execFileSync(command, [
      ...args,
      psql,
      '-Xqc',
      'insert into ledger select n from generate_series(800001, 800500) as n',
      uri,
    ])
    await silent('c2')
    const order = { clusterId, instanceId: (await member('c3')).instanceId }
    expect(await candidate('c3')).toMatchObject({ lossless: false, expectedLossBytes: null })
    expect(await fails('failover-cluster', order)).toMatchObject({ code: 'promotion.unsettled' })
    expect(await fails('failover-cluster', { ...order, acceptLoss: 'unknown' })).toMatchObject({
      code: 'failover.host_unreachable',
      hint: expect.stringContaining('"h2"'),
    })
    const { result } = await fixture.carryOut('failover-cluster', {
      ...order,
      acceptLoss: 'unknown',
      unreachableHost: 'h2',
    })
    expect(result).toMatchObject({ lossBytes: null, fenced: false, verdict: { kind: 'unknown' } })
    fixture.net.network.heal(fixture.host(2).network)
    const fenced = await waitUntil('c2 is fenced', async () => (await member('c2')).fenced, 60_000)
    expect(fenced.reason).toContain('took over')
    expect((await cluster()).holdings?.promotions).toEqual([])
    await rejoin('c1')
    await rejoin('c2')
  })

  test('a promotion that took place unseen is recorded by a failover to its member, and nothing is lost', async () => {
    const former = await primary()
    const { clusterId } = await cluster()
    const promoted = await member('c1')
    await insert(former, 900_001, 900_100)
    await gate.arm(true)
    const operationId = await fixture.submit('switchover-cluster', {
      clusterId,
      instanceId: promoted.instanceId,
    })
    const at = await gate.reach(operationId, 'end', 'promote')
    fixture.net.network.partition(host(promoted.hostName).network, ['console'])
    await gate.arm(false)
    await gate.open(operationId, at, true)
    await fixture.ended(operationId)
    fixture.net.network.heal(host(promoted.hostName).network)
    await waitUntil(
      'it is seen as a primary',
      async () => {
        const m = await member(promoted.name)
        return m.hostState === 'online' && m.role === 'primary'
      },
      60_000,
    )
    const { result } = await fixture.carryOut('failover-cluster', {
      clusterId,
      instanceId: promoted.instanceId,
      acceptLoss: 0,
    })
    expect(result).toMatchObject({ verdict: { kind: 'proven', proof: { covers: 'disk' } } })
    const kept = await fixture.ask(await primary(), 'select count(*)::int as n from ledger where n > 900000')
    expect(kept).toEqual([{ n: 100 }])
    await rejoin(former.name)
  })

  test('a host that is silent before its standby is told to be promoted costs a pause: the former primary goes on (F6)', async () => {
    const former = await primary()
    const { clusterId, members } = await cluster()
    const [next] = members.filter((m) => m.instanceId !== former.instanceId) as [ClusterMember]
    await gate.arm(true)
    const operationId = await fixture.submit('switchover-cluster', { clusterId, instanceId: next.instanceId })
    const at = await gate.reach(operationId, 'start', 'promote')
    fixture.net.network.partition(host(next.hostName).network, ['console'])
    await gate.release(operationId, at)
    expect(await fixture.ended(operationId)).toMatchObject({
      state: 'failed',
      fault: { code: 'promote.not_told' },
    })
    expect((await cluster()).holdings?.promotions).toEqual([])
    await insert(former, 950_001, 950_001)
    fixture.net.network.heal(host(next.hostName).network)
    await waitUntil('all follow it again', async () => {
      const { replication } = await primary()
      return replication?.standbys.filter((r) => r.state === 'streaming').length === 2
    })
    expect((await primary()).instanceId).toBe(former.instanceId)
  })

  test('a role that commits locally is named, and a failover that cannot ask the primary proves nothing (F6a)', async () => {
    const former = await primary()
    const standbys = (await cluster()).members.filter((m) => m.instanceId !== former.instanceId)
    await synchronous(standbys.map((m) => m.name))
    await fixture.carryOut('change-commit-mode', {
      instanceId: former.instanceId,
      database: null,
      role: 'postgres',
      commitMode: 'local',
    })
    expect((await cluster()).holdings?.weaker).toMatchObject([{ role: 'postgres', commitMode: 'local' }])
    fixture.net.network.partition(host(former.hostName).network)
    await silent(former.name)
    const { clusterId } = await cluster()
    const order = {
      clusterId,
      instanceId: standbys[0]?.instanceId as InstanceId,
      unreachableHost: former.hostName,
    }
    expect(await fails('failover-cluster', order)).toMatchObject({
      code: 'commits.weaker',
      message: expect.stringContaining('role "postgres"'),
    })
    const { result } = await fixture.carryOut('failover-cluster', { ...order, acceptLoss: 'unknown' })
    expect(result).toMatchObject({
      lossBytes: null,
      verdict: { kind: 'unknown', doubts: [{ code: 'commits.weaker' }] },
    })
    fixture.net.network.heal(host(former.hostName).network)
  })

  test('none of all this made what is recorded look older than the cluster', async () => {
    expect(await listRestoredRecords(fixture.db.pool)).toEqual([])
  })
})
