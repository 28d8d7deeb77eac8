import { showOperation } from '@floe/db'
import { Verdict } from '@floe/domain'
import { ThrowawayNetwork, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type HostsFixture, hostsFixture } from './testing/hosts-fixture'

const missing = ThrowawayNetwork.missing()
vi.setConfig({ testTimeout: 240_000 })

/** Three hosts, one of which is lost: its cluster goes on without a person, and nothing that was acknowledged is lost. */
describe.skipIf(missing !== null)(`a cluster fails over by itself${missing ? ` (${missing})` : ''}`, () => {
  let fixture: HostsFixture
  let one: string

  beforeAll(async () => {
    fixture = await hostsFixture({ hosts: 4, instances: 4 })
    await fixture.start()
    // the first host is the console's own
    one = await fixture.createInstance('c2', fixture.host(2))
    for (const n of [3, 4]) await fixture.createStandby(one, `c${n}`, fixture.host(n))
    await fixture.ask(await member('c2'), 'create table ledger (n int primary key)')
  }, 240_000)
  afterAll(() => fixture?.remove(), 60_000)

  const cluster = () => fixture.clusterOf(one)
  const member = (name: string) => fixture.memberOf(one, name)
  const primary = () => fixture.primaryOf(one)
  const automatic = {
    afterMs: 3_000,
    minIntervalMs: 0,
    isolatedAfterMs: 5_000,
    isolatedPrimary: 'read-only',
  }
  const order = async (wanted: object | null) => {
    const { clusterId, primaryInstanceId } = await cluster()
    return fixture.carryOut('change-automatic', {
      clusterId,
      instanceId: primaryInstanceId,
      automatic: wanted,
    })
  }
  const synchronous = async (strict: boolean) => {
    const { clusterId, primaryInstanceId, members } = await cluster()
    const instanceIds = members.filter((m) => m.memberRole === 'standby').map((m) => m.instanceId)
    await fixture.carryOut('change-synchronous', {
      clusterId,
      instanceId: primaryInstanceId,
      synchronous: { method: 'any', count: 1, instanceIds, strict },
      commitMode: 'on',
    })
  }
  const operations = async (kind: string) =>
    (
      await fixture.db.pool.query<{ id: string; actor: string; state: string }>(
        `SELECT id, actor, state FROM operation WHERE kind = $1 ORDER BY "createdAt"`,
        [kind],
      )
    ).rows
  const failovers = async () => (await operations('failover-cluster')).filter((o) => o.state === 'succeeded')
  /** The failover that the controller has decided after those before. */
  const failedOver = (before: readonly { id: string }[]) =>
    waitUntil('a failover has succeeded', async () => (await failovers())[before.length], 60_000)
  const rejoin = async (name: string) => {
    await waitUntil(
      `${name} is fenced, and nobody works on it`,
      async () =>
        (await member(name)).fenced &&
        (
          await fixture.db.pool.query(
            `SELECT FROM operation WHERE state IN ('queued', 'running', 'cancelling')`,
          )
        ).rowCount === 0,
      60_000,
    )
    await fixture.carryOut('rejoin-standby', {
      instanceId: (await member(name)).instanceId,
      method: 'rewind',
    })
  }

  test('it is refused while commits could be acknowledged by the primary alone, and says why', async () => {
    await expect(order(automatic)).rejects.toThrow('commits wait for no standby')
    await synchronous(false)
    await expect(order(automatic)).rejects.toThrow('too few are left')
    await synchronous(true)
    await waitUntil('the timeline is recorded', async () => (await cluster()).holdings?.timeline, 20_000)
    await order(automatic)
    expect((await cluster()).automatic).toEqual(automatic)
    // from here on a proof is of every commit, once what was written before has been confirmed
    await waitUntil('the floor counts', async () => (await cluster()).holdings?.floor, 20_000)
    await waitUntil('every agent was told', async () =>
      (await cluster()).members.every((m) => m.primaryKnown?.heldBack?.isolatedPrimary === 'read-only'),
    )
    // what would make it unsafe is refused from here on
    await expect(synchronous(false)).rejects.toThrow('could not fail over automatically and safely')
    await expect(
      fixture.carryOut('remove-standby', { instanceId: (await member('c4')).instanceId, confirmName: 'c4' }),
    ).rejects.toThrow('automatically and safely without "c4"')
  })

  test('a session that asks for less waits for standbys all the same', async () => {
    const before = await primary()
    const hosts = [await member('c3'), await member('c4')].map(fixture.hostOf)
    for (const { network } of hosts) fixture.net.network.partition(network, [fixture.hostOf(before).network])
    const commit = fixture
      .ask(
        before,
        "set synchronous_commit = off; set statement_timeout = '1s'; insert into ledger values (-1)",
      )
      .then(
        () => 'acknowledged',
        () => 'refused',
      )
    await waitUntil(
      'it waits',
      async () => ((await member('c2')).replication?.waitingCommits ?? 0) > 0,
      20_000,
    )
    for (const { network } of hosts) fixture.net.network.heal(network)
    expect(await commit).toBe('acknowledged')
    await waitUntil(
      'standbys stream again',
      async () => {
        const { replication } = await member('c2')
        return replication?.standbys.filter((s) => s.state === 'streaming').length === 2
      },
      60_000,
    )
  })

  test('one that crashes is started again by an order, without a failover', async () => {
    // what the start may take before it is given up for a failover: a busy machine needs more than the 3 s of this cluster
    const patient = { ...automatic, afterMs: 60_000 }
    await order(patient)
    expect((await cluster()).automatic).toEqual(patient)
    const before = await primary()
    const pid = Number(
      (
        await fixture.db.pool.query(`SELECT observed->>'postmasterPid' AS pid FROM instance WHERE id = $1`, [
          before.instanceId,
        ])
      ).rows[0]?.pid,
    )
    process.kill(pid, 'SIGKILL')
    const started = await waitUntil(
      'it is started',
      async () => (await operations('start-instance')).find((o) => o.actor === 'controller'),
      30_000,
    )
    await fixture.succeeded(started.id)
    await waitUntil('it runs', async () => (await primary()).state === 'running')
    expect((await primary()).name).toBe(before.name)
    expect(await operations('failover-cluster')).toEqual([])
    await order(automatic)
  })

  test('a host that is cut off from all others: a standby takes over, nothing is lost, and the log says why', async () => {
    const before = await primary()
    const had = await failovers()
    const ledger = await fixture.ledger(one)
    await waitUntil('rows are acknowledged', () => ledger.acknowledged.length > 50)
    fixture.net.network.partition(fixture.hostOf(before).network)
    const { id, actor } = await failedOver(had)
    expect(actor).toBe('controller')
    const rows = ledger.acknowledged.length
    await waitUntil('rows are acknowledged again', () => ledger.acknowledged.length > rows + 20, 30_000)
    const after = await primary()
    expect(after.name).not.toBe(before.name)
    await ledger.stop()
    expect(await fixture.lost(one, ledger.acknowledged)).toEqual([])
    const operation = await showOperation(fixture.db.pool, id)
    expect(Verdict.parse((operation?.result as { verdict?: unknown } | null)?.verdict)).toMatchObject({
      kind: 'proven',
      proof: { covers: 'standbys', floor: true },
    })
    const log = await fixture.logOf(id)
    expect(log).toContain(`Host "${before.hostName}" of the primary "${before.name}" has not answered`)
    expect(log).toContain('has received nothing from it')
    // its own agent has ended its clients meanwhile: who reaches it reads nothing new and writes nothing
    fixture.net.network.heal(fixture.hostOf(before).network)
    await rejoin(before.name)
    await waitUntil('its word is gone', async () => (await cluster()).automaticWord === null, 20_000)
  })

  test('a host that only the console does not reach fails nothing over: a standby still hears it', async () => {
    const before = await primary()
    const had = (await operations('failover-cluster')).length
    fixture.net.network.partition(fixture.hostOf(before).network, ['console'])
    const word = await waitUntil(
      'it says why not',
      async () => {
        const { automaticWord } = await cluster()
        return automaticWord?.text.includes('received a message from it') ? automaticWord : null
      },
      30_000,
    )
    expect(word.kind).toBe('wait')
    fixture.net.network.heal(fixture.hostOf(before).network)
    await waitUntil('all is well', async () => (await cluster()).automaticWord === null, 30_000)
    expect((await operations('failover-cluster')).length).toBe(had)
    expect((await primary()).name).toBe(before.name)
  })

  test('turned off, members are started by their agents again and commits as they are set', async () => {
    await order(null)
    expect((await cluster()).automatic).toBeNull()
    await waitUntil('no floor', async () => (await primary()).replication?.commitFloor === 'off', 20_000)
    await waitUntil(
      'every agent reports that it holds nothing back',
      async () => (await cluster()).members.every((m) => (m.primaryKnown?.heldBack ?? null) === null),
      20_000,
    )
  })
})
