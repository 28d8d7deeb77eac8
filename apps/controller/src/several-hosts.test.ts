import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { inTransaction, newestSeq, revokeHost, showHost, showInstance, showOperation } from '@floe/db'
import { type ThrowawayHost, ThrowawayNetwork, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HostsFixture, hostsFixture } from './testing/hosts-fixture'

const missing = ThrowawayNetwork.missing()

/** Real agents, each on a host of its own, so that a partition is one: packets do not arrive, and nobody says so. */
describe.skipIf(missing !== null)(`several hosts${missing ? ` (${missing})` : ''}`, () => {
  let fixture: HostsFixture
  let one: ThrowawayHost
  let two: ThrowawayHost
  let three: ThrowawayHost

  beforeAll(async () => {
    fixture = await hostsFixture({ hosts: 3 })
    ;[one, two, three] = fixture.net.hosts as [ThrowawayHost, ThrowawayHost, ThrowawayHost]
    await fixture.start()
  }, 120_000)
  afterAll(() => fixture?.remove(), 60_000)

  const openIncidents = async () =>
    (
      await fixture.db.pool.query<{ key: string }>('SELECT key FROM incident WHERE "closedAt" IS NULL')
    ).rows.map(({ key }) => key)
  const stateOf = async (hostId: string) => (await showHost(fixture.db.pool, hostId))?.state

  test('an instance is reached at its own host’s address', async () => {
    const instanceId = await fixture.createInstance('on-two', two)
    const seen = await showInstance(fixture.db.pool, instanceId)
    expect(seen?.connection?.host).toBe(two.address)
    expect(await fixture.ask(seen, 'SELECT host(inet_server_addr()) AS address')).toEqual([
      { address: two.address },
    ])
  }, 60_000)

  test('a host that is cut off becomes stale, then offline, while the samples of the others go on; it comes back by itself', async () => {
    const lost = await fixture.createInstance('on-three', three)
    const kept = await fixture.createInstance('on-one', one)
    await waitUntil('both are measured', async () => {
      const newest = await Promise.all([lost, kept].map((id) => newestSeq(fixture.db.pool, id)))
      return newest.every((seq) => seq !== null)
    })
    fixture.net.network.partition(three.network)
    const states = new Set<string | undefined>()
    const before = (await newestSeq(fixture.db.pool, kept)) as number
    let asked = Date.now()
    let longestMs = 0
    let newest = before
    await waitUntil(
      'it is offline',
      async () => {
        const seq = (await newestSeq(fixture.db.pool, kept)) as number
        if (seq > newest) {
          longestMs = Math.max(longestMs, Date.now() - asked)
          asked = Date.now()
          newest = seq
        }
        states.add(await stateOf(three.hostId))
        return (await showInstance(fixture.db.pool, lost))?.state === 'unknown'
      },
      60_000,
      200,
    )
    expect([...states]).toEqual(['online', 'stale', 'offline'])
    // a sample a second, whatever the dead host does; the bound leaves room for a busy machine
    expect(newest - before).toBeGreaterThan(15)
    expect(longestMs).toBeLessThan(8_000)
    expect(await showHost(fixture.db.pool, three.hostId)).toMatchObject({
      fault: { code: 'agent.unreachable' },
    })
    await waitUntil('an incident is open', async () => (await openIncidents()).length > 0)
    expect(await openIncidents()).toEqual([`host-offline:${three.hostId}`])
    fixture.net.network.heal(three.network)
    await waitUntil('it is seen again', async () => (await stateOf(three.hostId)) === 'online', 30_000)
    await waitUntil('the incident is closed', async () => (await openIncidents()).length === 0)
  }, 150_000)

  test('hosts can be cut off from each other while the console reaches both', async () => {
    const reach = (from: ThrowawayHost, to: ThrowawayHost) => {
      const [file, ...args] = [...from.network.command, 'bash', '-c']
      try {
        execFileSync(
          file as string,
          [...args, `exec 3<>/dev/tcp/${to.address}/${to.home.installation.agentPort}`],
          { stdio: 'ignore', timeout: 1_500 },
        )
        return true
      } catch {
        return false
      }
    }
    expect(reach(one, two)).toBe(true)
    fixture.net.network.partition(one.network, [two.network])
    expect([reach(one, two), reach(two, one), reach(one, three)]).toEqual([false, false, true])
    const seenAt = Date.now()
    await waitUntil('the console still sees both', async () => {
      const hosts = await Promise.all([one, two].map(({ hostId }) => showHost(fixture.db.pool, hostId)))
      return hosts.every((host) => (host?.observedAt?.getTime() ?? 0) > seenAt)
    })
    fixture.net.network.heal(one.network)
    await waitUntil('they reach each other again', () => reach(one, two) && reach(two, one))
  }, 60_000)

  test('an agent that takes connections and answers nothing delays no other host', async () => {
    process.kill(two.agent.pid, 'SIGSTOP')
    try {
      await waitUntil('it is stale', async () => (await stateOf(two.hostId)) !== 'online', 20_000)
      const at = Date.now()
      await fixture.createInstance('meanwhile', one)
      expect(Date.now() - at).toBeLessThan(20_000)
    } finally {
      process.kill(two.agent.pid, 'SIGCONT')
    }
    await waitUntil('it is seen again', async () => (await stateOf(two.hostId)) === 'online', 20_000)
  }, 60_000)

  test('a host that is revoked in the middle of an operation: it fails and says why, and nothing the host says is believed', async () => {
    const instanceId = randomUUID()
    fixture.net.network.partition(three.network)
    const input = { instanceId, name: 'half-way', settings: {} }
    const operationId = await fixture.submit('create-instance', input, three.hostId)
    await waitUntil('it waits for the host', async () =>
      (await showOperation(fixture.db.pool, operationId))?.message?.includes('does not answer'),
    )
    await inTransaction(fixture.db.as.web.pool, (tx) => revokeHost(tx, three.hostId, 'Tester'))
    expect(await fixture.ended(operationId, 10_000)).toMatchObject({
      state: 'failed',
      fault: { code: 'host.revoked', message: 'host "h3" was revoked' },
    })
    fixture.net.network.heal(three.network)
    expect(await showHost(fixture.db.pool, three.hostId)).toMatchObject({
      state: 'unknown',
      revokedBy: 'Tester',
    })
    const before = (await showHost(fixture.db.pool, three.hostId))?.observedAt?.getTime()
    const others = Date.now()
    await waitUntil('the others are seen', async () => {
      const host = await showHost(fixture.db.pool, two.hostId)
      return (host?.observedAt?.getTime() ?? 0) > others + 2_000
    })
    expect((await showHost(fixture.db.pool, three.hostId))?.observedAt?.getTime()).toBe(before)
    await expect(
      fixture.submit('create-instance', { instanceId: randomUUID(), name: 'x', settings: {} }, three.hostId),
    ).rejects.toThrow('host "h3" was revoked')
    // an operation on an instance that is already there ends as clearly
    const { rows } = await fixture.db.pool.query(`SELECT id FROM instance WHERE name = 'on-three'`)
    expect(
      await fixture.ended(
        await fixture.submit('stop-instance', { instanceId: rows[0].id, mode: 'fast' }),
        10_000,
      ),
    ).toMatchObject({ state: 'failed', fault: { code: 'host.revoked' } })
  }, 90_000)
})
