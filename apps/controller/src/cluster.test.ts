import { existsSync, readFileSync } from 'node:fs'
import { listRestoredRecords, showInstance, showOperation } from '@floe/db'
import { type ClusterMember, type ClusterObserved, judgeCandidates, primaryOf } from '@floe/domain'
import { cancelOperation } from '@floe/operations/submit'
import { ThrowawayNetwork, waitUntil } from '@floe/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { actor } from './testing/controllers-fixture'
import { type HostsFixture, hostsFixture } from './testing/hosts-fixture'
import { type Boundary, StepGate } from './testing/step-gate'

const missing = ThrowawayNetwork.missing()

describe.skipIf(missing !== null)(`a cluster on three hosts${missing ? ` (${missing})` : ''}`, () => {
  let fixture: HostsFixture
  let gate: StepGate
  let one: string

  beforeAll(async () => {
    fixture = await hostsFixture({ hosts: 3 })
    gate = await StepGate.install(fixture.db)
    await fixture.start()
    one = await fixture.createInstance('one')
    await fixture.ask(await primary(), 'create table ledger (n int primary key)')
  }, 180_000)
  afterAll(async () => {
    await gate?.remove()
    await fixture?.remove()
  })
  afterEach(() => gate?.arm(false))

  const cluster = () => fixture.clusterOf(one)
  const primary = () => fixture.primaryOf(one)
  const member = (name: string) => fixture.memberOf(one, name)
  // not as fast as it can: that takes the processors of the hosts it shares them with
  const ledger = () => fixture.ledger(one, 2)
  const wipe = async () => fixture.ask(await primary(), 'truncate ledger')

  test('two standbys on other hosts are made and seen to follow', async () => {
    for (const n of [2, 3]) await fixture.createStandby(one, `one-${n}`, fixture.host(n))
    const seen = await cluster()
    expect(seen.members.map((m) => [m.name, m.hostName, m.memberRole, m.role])).toEqual([
      ['one', 'h1', 'primary', 'primary'],
      ['one-2', 'h2', 'standby', 'standby'],
      ['one-3', 'h3', 'standby', 'standby'],
    ])
    expect(judgeCandidates(seen, 'switchover').map((c) => c.blockers)).toEqual([[], []])
    expect(
      JSON.stringify(await showOperation(fixture.db.pool, (await operations())[0] as string)),
    ).not.toContain('SCRAM')
  })
  const operations = async () =>
    (
      await fixture.db.pool.query<{ id: string }>('SELECT id FROM operation ORDER BY "createdAt" DESC')
    ).rows.map((r) => r.id)

  test('commits wait for the standbys that were chosen', async () => {
    const { clusterId, members } = await cluster()
    await fixture.carryOut('change-synchronous', {
      clusterId,
      instanceId: one,
      synchronous: {
        method: 'any',
        count: 1,
        instanceIds: members.filter((m) => m.memberRole === 'standby').map((m) => m.instanceId),
      },
      commitMode: 'on',
    })
    expect(await fixture.ask(await primary(), 'show synchronous_standby_names')).toEqual([
      { synchronous_standby_names: 'ANY 1 ("one-2", "one-3")' },
    ])
  })

  test('two switchovers under load lose no acknowledged row, and all members follow', async () => {
    await wipe()
    const writer = await ledger()
    try {
      for (const name of ['one-2', 'one']) {
        expect(await writer.writesAgain(10_000)).toBe(true)
        writer.takeLongestGap()
        await fixture.carryOut('switchover-cluster', {
          clusterId: (await cluster()).clusterId,
          instanceId: (await member(name)).instanceId,
        })
        expect(await writer.writesAgain(10_000)).toBe(true)
        console.log(`gap of the switchover to ${name}: ${Math.round(writer.takeLongestGap())} ms`)
        const seen = await cluster()
        expect(primaryOf(seen)?.name).toBe(name)
        expect(seen.members.filter((m) => m.role === 'standby')).toHaveLength(2)
      }
    } finally {
      await writer.stop()
    }
    expect(writer.acknowledged.length).toBeGreaterThan(20)
    expect(await fixture.lost(one, writer.acknowledged)).toEqual([])
    expect(await fixture.ask(await primary(), 'show synchronous_standby_names')).toEqual([
      { synchronous_standby_names: 'ANY 1 ("one-2", "one-3")' },
    ])
    const slots = await fixture.ask(await member('one-2'), 'select slot_name from pg_replication_slots')
    expect(slots).toEqual([])
  })

  test('a standby that has fallen silent does not hold up the switchover to another one (F8)', async () => {
    await wipe()
    const writer = await ledger()
    const [candidate, silent] = (await cluster()).members.filter((m) => m.memberRole === 'standby') as [
      ClusterMember,
      ClusterMember,
    ]
    const [receiver] = await fixture.ask<{ pid: number }>(silent, 'select pid from pg_stat_wal_receiver')
    const { pid } = receiver as { pid: number }
    try {
      expect(await writer.writesAgain(10_000)).toBe(true)
      process.kill(pid, 'SIGSTOP')
      writer.takeLongestGap()
      const switchover = fixture.carryOut('switchover-cluster', {
        clusterId: (await cluster()).clusterId,
        instanceId: candidate.instanceId,
      })
      await waitUntil(
        'the other one is the primary',
        async () => (await primary()).name === candidate.name,
        30_000,
      )
      expect(await writer.writesAgain(10_000)).toBe(true)
      // that it took writes while the silent one was silent is the point; how soon is measured by bench switchover
      console.log(`gap of the switchover past a silent standby: ${Math.round(writer.takeLongestGap())} ms`)
      expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) T /)
      process.kill(pid, 'SIGCONT')
      await switchover
    } finally {
      await writer.stop()
      // where it came to no end
      if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGCONT')
    }
    await waitUntil(
      'both follow',
      async () => (await primary()).replication?.standbys.filter((r) => r.state === 'streaming').length === 2,
      30_000,
    )
  })

  test('a killed primary and a failover lose no acknowledged row; the former primary takes no write and comes back', async () => {
    await wipe()
    const writer = await ledger()
    const { clusterId } = await cluster()
    const former = await primary()
    try {
      expect(await writer.writesAgain(10_000)).toBe(true)
      const pid = (await showInstance(fixture.db.pool, former.instanceId))?.postmasterPid as number
      process.kill(pid, 'SIGKILL')
      await waitUntil('the crash is seen', async () => (await primary()).state === 'crashed')
      // until then a position is one of before the crash, and the other standby may hold more
      const crashed = await waitUntil('no standby receives any more', async () => {
        const seen = await cluster()
        const standbys = seen.members.filter((m) => m.memberRole === 'standby')
        return standbys.every((m) => m.replication?.receiver?.status !== 'streaming') ? seen : null
      })
      const [best] = judgeCandidates(crashed, 'failover')
      expect(best?.blockers).toEqual([])
      const begun = performance.now()
      const operation = await fixture.carryOut('failover-cluster', {
        clusterId,
        instanceId: best?.instanceId,
      })
      expect(await writer.writesAgain(10_000)).toBe(true)
      console.log(`from the command to the end of the failover: ${Math.round(performance.now() - begun)} ms`)
      expect(operation.result).toMatchObject({ lossBytes: 0, fenced: true })
    } finally {
      await writer.stop()
    }
    expect(await fixture.lost(one, writer.acknowledged)).toEqual([])
    const fenced = await waitUntil('the fence is seen', async () => {
      const m = await member(former.name)
      return m.fenced ? m : null
    })
    expect(fenced).toMatchObject({ memberRole: 'fenced', state: 'stopped' })
    const started = await fixture.runToEnd('start-instance', { instanceId: former.instanceId })
    expect(started.fault?.code).toBe('instance.fenced')
    await fixture.carryOut('rejoin-standby', { instanceId: former.instanceId })
    expect(await member(former.name)).toMatchObject({ memberRole: 'standby', role: 'standby', fenced: null })
  })

  test('a primary whose host is cut off right after a switchover is only left behind when that is typed, and is fenced when it answers', async () => {
    const { candidate: former, operationId, at: promoting } = await switchoverHeldAt('start', 'promote')
    // of the primary before it no report came, and of this one none comes before it is gone
    await fixture.db.pool.query(`UPDATE cluster SET holdings = jsonb_set(holdings, '{weaker}', 'null')`)
    await gate.open(operationId, promoting, false)
    const at = await gate.reach(operationId, 'end', 'repair')
    const { clusterId, members, primaryInstanceId } = await cluster()
    expect(primaryInstanceId).toBe(former.instanceId)
    const host = fixture.hostOf(former)
    const candidate = members.find((m) => m.instanceId !== primaryInstanceId) as ClusterMember
    fixture.net.network.partition(host.network)
    await gate.release(operationId, at)
    await waitUntil('the host is seen silent', async () => (await primary()).hostState !== 'online', 40_000)
    const refused = await fixture.runToEnd('failover-cluster', {
      clusterId,
      instanceId: candidate.instanceId,
    })
    expect(refused.fault).toMatchObject({ code: 'failover.host_unreachable' })
    await fixture.carryOut('failover-cluster', {
      clusterId,
      instanceId: candidate.instanceId,
      unreachableHost: former.hostName,
    })
    expect(await fixture.ask(await primary(), 'insert into ledger values (-1) returning n')).toEqual([
      { n: -1 },
    ])
    fixture.net.network.heal(host.network)
    const fenced = await waitUntil('it is fenced', async () => (await member(former.name)).fenced, 30_000)
    expect(fenced.reason).toContain('took over')
    await waitUntil(
      'it is free',
      async () => !(await showInstance(fixture.db.pool, former.instanceId))?.operation,
      30_000,
    )
    await fixture.carryOut('rejoin-standby', { instanceId: former.instanceId })
    const seen = await cluster()
    expect(seen.members.filter((m) => m.role === 'standby')).toHaveLength(2)
  }, 120_000)

  /** Begins a switchover to some standby and holds it at a boundary of one of its steps. */
  async function switchoverHeldAt(when: Boundary['when'], step: string) {
    const before = await waitUntil('a standby can take over', async () => {
      const seen = await cluster()
      return judgeCandidates(seen, 'switchover').every((c) => c.blockers.length === 0) ? seen : null
    })
    const candidate = before.members.find((m) => m.memberRole === 'standby') as ClusterMember
    await gate.arm(true)
    const operationId = await fixture.submit('switchover-cluster', {
      clusterId: before.clusterId,
      instanceId: candidate.instanceId,
    })
    return { before, candidate, operationId, at: await gate.reach(operationId, when, step) }
  }

  /** A switchover that is cancelled at that boundary; the cancel is next in line there, but the controller may still be first. */
  async function cancelledAt(when: Boundary['when'], step: string) {
    for (;;) {
      const held = await switchoverHeldAt(when, step)
      const { operationId } = held
      const cancelled = cancelOperation(fixture.db.as.web, { operationId, actor }).catch(
        (error) => error.fault,
      )
      await waitUntil('the cancel is next', async () => {
        // a role sees what its own sessions do
        const { rows } = await fixture.db.as.web.pool.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
              AND query LIKE '%FROM operation WHERE id = $1 FOR NO KEY UPDATE' AND pid <> pg_backend_pid()`,
        )
        return rows.length === 1
      })
      await gate.release(operationId, held.at)
      const answer = await cancelled
      if (answer?.code !== 'operation.past_no_return') {
        expect(answer).toEqual({ state: 'cancelling' })
        return held
      }
      expect(await fixture.ended(operationId)).toMatchObject({ state: 'succeeded' })
    }
  }

  test.each([
    ['start', 'prepare'],
    ['start', 'demote'],
    // the primary is down already: this is the last moment
    ['end', 'demote'],
  ] as const)(
    'a switchover that is cancelled at the %s of "%s" leaves the primary it was, which takes writes',
    async (when, step) => {
      const { before, operationId } = await cancelledAt(when, step)
      const operation = await fixture.ended(operationId)
      expect(operation).toMatchObject({ state: 'cancelled', fault: null })
      expect(operation.steps.map((s) => s.fault?.detail).join()).not.toContain('Could not be undone')
      expect(operation.steps.find((s) => s.name === 'promote')).toMatchObject({
        state: 'cancelled',
        startedAt: null,
      })
      const after = await cluster()
      expect(after.primaryInstanceId).toBe(before.primaryInstanceId)
      const written = await waitUntil(
        'the primary takes a write',
        async () =>
          fixture
            .ask<{ n: number }>(await primary(), 'insert into ledger values (-2) returning n')
            .catch(() => null),
        30_000,
      )
      expect(written).toEqual([{ n: -2 }])
      await fixture.ask(await primary(), 'delete from ledger where n = -2')
      await waitUntil(
        'all members are what they were',
        async () => {
          const now = await cluster()
          const roles = ({ members }: ClusterObserved) => members.map((m) => [m.name, m.memberRole, m.role])
          return (
            now.members.every((m) => m.state === 'running' && m.fenced === null) &&
            JSON.stringify(roles(now)) === JSON.stringify(roles(before))
          )
        },
        30_000,
      )
    },
    120_000,
  )

  test('a cancel once a standby is being promoted is refused, and the switchover goes through', async () => {
    const { candidate, operationId, at } = await switchoverHeldAt('end', 'promote')
    await expect(cancelOperation(fixture.db.as.web, { operationId, actor })).rejects.toMatchObject({
      fault: { code: 'operation.past_no_return', detail: expect.stringContaining('has begun') },
    })
    await gate.release(operationId, at)
    expect(await fixture.ended(operationId)).toMatchObject({ state: 'succeeded' })
    expect((await cluster()).primaryInstanceId).toBe(candidate.instanceId)
    expect((await primary()).fenced).toBeNull()
  })

  test('a second operation on the cluster is refused at once, with the first one named', async () => {
    const { clusterId, members } = await cluster()
    const standbys = members.filter((m) => m.memberRole === 'standby')
    const first = await fixture.submit('switchover-cluster', {
      clusterId,
      instanceId: standbys[0]?.instanceId,
    })
    await expect(
      fixture.submit('restart-instance', { instanceId: standbys[1]?.instanceId }),
    ).rejects.toMatchObject({
      blockingOperationId: first,
    })
    await fixture.ended(first)
  })

  test('a standby that is promoted has a cluster of its own, one that is removed leaves nothing', async () => {
    const { members } = await cluster()
    const standbys = members.filter((m) => m.memberRole === 'standby')
    const [a, b] = standbys as [ClusterMember, ClusterMember]
    await expect(
      fixture.submit('delete-instance', { instanceId: a.instanceId, confirmName: a.name }),
    ).rejects.toThrow('is a standby')
    await fixture.carryOut('promote-standby', { instanceId: a.instanceId, confirmName: a.name })
    const own = await fixture.clusterOf(a.instanceId)
    expect(own).toMatchObject({ primaryInstanceId: a.instanceId, synchronous: null })
    expect(own?.members).toHaveLength(1)
    await fixture.carryOut('remove-standby', { instanceId: b.instanceId, confirmName: b.name })
    const rest = await fixture.clusterOf((await primaryOfRest(members)).instanceId)
    expect(rest.members).toHaveLength(1)
    expect(rest.synchronous).toBeNull()
    const [left] = await fixture.ask<{ n: number }>(
      rest.members[0] as ClusterMember,
      'select count(*)::int as n from pg_replication_slots',
    )
    expect(left).toEqual({ n: 0 })
  })
  const primaryOfRest = async (members: ClusterMember[]) =>
    members.find((m) => m.memberRole === 'primary') as ClusterMember

  test('none of all this made what is recorded look older than the cluster', async () => {
    expect(await listRestoredRecords(fixture.db.pool)).toEqual([])
  })
})
