import { execFileSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { inTransaction, newestSeq, revokeHost, showHost, showInstance, showOperation } from '@floe/db'
import { createTestDatabase, type TestDatabase } from '@floe/db/testing'
import type { OperationInput, OperationKind } from '@floe/domain'
import { submitOperation } from '@floe/operations/submit'
import {
  startThrowawayHosts,
  type ThrowawayHost,
  type ThrowawayHosts,
  ThrowawayNetwork,
  waitUntil,
} from '@floe/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startController } from './controller'
import { actor, keptLog } from './testing/bench-of-controllers'
import { clientTls } from './testing/client-tls'
import { addressRule } from './webhook-address'

const missing = ThrowawayNetwork.missing()

/** Real agents, each on a host of its own, so that a partition is one: packets do not arrive, and nobody says so. */
describe.skipIf(missing !== null)(`several hosts${missing ? ` (${missing})` : ''}`, () => {
  let it: ThrowawayHosts
  let one: ThrowawayHost
  let two: ThrowawayHost
  let three: ThrowawayHost
  let db: TestDatabase
  let controller: ReturnType<typeof startController>
  const log = keptLog()
  const password = randomBytes(12).toString('base64url')

  beforeAll(async () => {
    it = await startThrowawayHosts(3, { bundle: inject('agentBundle') })
    ;[one, two, three] = it.hosts as [ThrowawayHost, ThrowawayHost, ThrowawayHost]
    db = await createTestDatabase(inject('engineConnectionString'))
    for (const { hostId, name, home } of it.hosts.slice(1))
      await db.pool.query('INSERT INTO host (id, name, "agentUrl") VALUES ($1, $2, $3)', [
        hostId,
        name,
        home.agentUrl,
      ])
    controller = startController({
      connectionString: db.as.controller.connectionString,
      authority: it.authority.signing,
      authSecret: 'a secret of the tests',
      webhookRule: addressRule([], ['127.0.0.1']),
      identity: () => one.home.identities.task,
      host: { hostId: one.hostId, name: one.name, agentUrl: one.home.agentUrl },
      log,
    })
    await waitUntil('all are seen', async () => {
      const states = await Promise.all(it.hosts.map(({ hostId }) => stateOf(hostId)))
      return states.every((state) => state === 'online')
    })
  }, 120_000)
  afterAll(async () => {
    await controller?.stop()
    await it?.remove()
    await db?.drop()
  }, 60_000)

  const openIncidents = async () =>
    (await db.pool.query<{ key: string }>('SELECT key FROM incident WHERE "closedAt" IS NULL')).rows.map(
      ({ key }) => key,
    )
  const stateOf = async (hostId: string) => (await showHost(db.pool, hostId))?.state

  async function begin<K extends OperationKind>(kind: K, input: unknown, hostId?: string) {
    const { operationId } = await submitOperation(db.as.web, {
      kind,
      input: input as OperationInput<K>,
      actor,
      ...(hostId ? { hostId } : {}),
    })
    return operationId
  }
  const ended = (operationId: string, boundMs = 30_000) =>
    waitUntil(
      'the operation ended',
      async () => {
        const seen = await showOperation(db.pool, operationId)
        return seen?.endedAt ? seen : null
      },
      boundMs,
    )

  async function createOn(host: ThrowawayHost, name: string): Promise<string> {
    const instanceId = randomUUID()
    const input = { instanceId, name, settings: {}, ownerPasswordVerifier: scramVerifier(password) }
    expect(await ended(await begin('create-instance', input, host.hostId))).toMatchObject({
      state: 'succeeded',
    })
    return instanceId
  }

  test('an instance is reached at its own host’s address', async () => {
    const instanceId = await createOn(two, 'on-two')
    const seen = await showInstance(db.pool, instanceId)
    expect(seen?.connection?.host).toBe(two.address)
    const client = new pg.Client({
      ...clientTls,
      host: two.address,
      port: seen?.port ?? 0,
      user: 'postgres',
      database: 'postgres',
      password,
    })
    await client.connect()
    expect((await client.query('SELECT host(inet_server_addr()) AS address')).rows).toEqual([
      { address: two.address },
    ])
    await client.end()
  }, 60_000)

  test('a host that is cut off becomes stale, then offline, while the samples of the others go on; it comes back by itself', async () => {
    const lost = await createOn(three, 'on-three')
    const kept = await createOn(one, 'on-one')
    await waitUntil('both are measured', async () => {
      const newest = await Promise.all([lost, kept].map((id) => newestSeq(db.pool, id)))
      return newest.every((seq) => seq !== null)
    })
    it.network.partition(three.network)
    const states = new Set<string | undefined>()
    const before = (await newestSeq(db.pool, kept)) as number
    let asked = Date.now()
    let longestMs = 0
    let newest = before
    await waitUntil(
      'it is offline',
      async () => {
        const seq = (await newestSeq(db.pool, kept)) as number
        if (seq > newest) {
          longestMs = Math.max(longestMs, Date.now() - asked)
          asked = Date.now()
          newest = seq
        }
        states.add(await stateOf(three.hostId))
        return (await showInstance(db.pool, lost))?.state === 'unknown'
      },
      60_000,
      200,
    )
    expect([...states]).toEqual(['online', 'stale', 'offline'])
    // a sample a second, whatever the dead host does; the bound leaves room for a busy machine
    expect(newest - before).toBeGreaterThan(15)
    expect(longestMs).toBeLessThan(8_000)
    expect(await showHost(db.pool, three.hostId)).toMatchObject({ fault: { code: 'agent.unreachable' } })
    await waitUntil('an incident is open', async () => (await openIncidents()).length > 0)
    expect(await openIncidents()).toEqual([`host-offline:${three.hostId}`])
    it.network.heal(three.network)
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
    it.network.partition(one.network, [two.network])
    expect([reach(one, two), reach(two, one), reach(one, three)]).toEqual([false, false, true])
    const seenAt = Date.now()
    await waitUntil('the console still sees both', async () => {
      const hosts = await Promise.all([one, two].map(({ hostId }) => showHost(db.pool, hostId)))
      return hosts.every((host) => (host?.observedAt?.getTime() ?? 0) > seenAt)
    })
    it.network.heal(one.network)
    await waitUntil('they reach each other again', () => reach(one, two) && reach(two, one))
  }, 60_000)

  test('an agent that takes connections and answers nothing delays no other host', async () => {
    process.kill(two.agent.pid, 'SIGSTOP')
    try {
      await waitUntil('it is stale', async () => (await stateOf(two.hostId)) !== 'online', 20_000)
      const at = Date.now()
      await createOn(one, 'meanwhile')
      expect(Date.now() - at).toBeLessThan(20_000)
    } finally {
      process.kill(two.agent.pid, 'SIGCONT')
    }
    await waitUntil('it is seen again', async () => (await stateOf(two.hostId)) === 'online', 20_000)
  }, 60_000)

  test('a host that is revoked in the middle of an operation: it fails and says why, and nothing the host says is believed', async () => {
    const instanceId = randomUUID()
    it.network.partition(three.network)
    const input = { instanceId, name: 'half-way', settings: {} }
    const operationId = await begin('create-instance', input, three.hostId)
    await waitUntil('it waits for the host', async () =>
      (await showOperation(db.pool, operationId))?.message?.includes('does not answer'),
    )
    await inTransaction(db.as.web.pool, (tx) => revokeHost(tx, three.hostId, 'Tester'))
    expect(await ended(operationId, 10_000)).toMatchObject({
      state: 'failed',
      fault: { code: 'host.revoked', message: 'host "h3" was revoked' },
    })
    it.network.heal(three.network)
    expect(await showHost(db.pool, three.hostId)).toMatchObject({ state: 'unknown', revokedBy: 'Tester' })
    const before = (await showHost(db.pool, three.hostId))?.observedAt?.getTime()
    const others = Date.now()
    await waitUntil('the others are seen', async () => {
      const host = await showHost(db.pool, two.hostId)
      return (host?.observedAt?.getTime() ?? 0) > others + 2_000
    })
    expect((await showHost(db.pool, three.hostId))?.observedAt?.getTime()).toBe(before)
    await expect(
      begin('create-instance', { instanceId: randomUUID(), name: 'x', settings: {} }, three.hostId),
    ).rejects.toThrow('host "h3" was revoked')
    // an operation on an instance that is already there ends as clearly
    const { rows } = await db.pool.query(`SELECT id FROM instance WHERE name = 'on-three'`)
    expect(
      await ended(await begin('stop-instance', { instanceId: rows[0].id, mode: 'fast' }), 10_000),
    ).toMatchObject({ state: 'failed', fault: { code: 'host.revoked' } })
  }, 90_000)
})
