import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { listRestoredRecords, readClusterOf, readOperationLog, showInstance, showOperation } from '@floe/db'
import { createTestDatabase, type TestDatabase } from '@floe/db/testing'
import {
  type ClusterMember,
  type ClusterObserved,
  judgeCandidates,
  type OperationInput,
  type OperationKind,
  primaryOf,
} from '@floe/domain'
import { cancelOperation, submitOperation } from '@floe/operations/submit'
import { startThrowawayHosts, type ThrowawayHosts, ThrowawayNetwork, waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { startController } from './controller'
import { actor, keptLog } from './testing/bench-of-controllers'
import { clientTls } from './testing/client-tls'
import { type Boundary, StepGate } from './testing/step-gate'
import { WriteLedger } from './testing/write-ledger'
import { addressRule } from './webhook-address'

const missing = ThrowawayNetwork.missing()
const password = randomBytes(12).toString('base64url')

describe.skipIf(missing !== null)(`a cluster on three hosts${missing ? ` (${missing})` : ''}`, () => {
  let db: TestDatabase
  let net: ThrowawayHosts
  let gate: StepGate
  let controller: ReturnType<typeof startController>
  const firstId = randomUUID()

  const start = () =>
    startController({
      connectionString: db.as.controller.connectionString,
      authority: net.authority.signing,
      identity: () => (net.hosts[0] as ThrowawayHosts['hosts'][number]).home.identities.task,
      authSecret: 'a secret of the tests',
      webhookRule: addressRule([], ['127.0.0.1']),
      host: hostOf(0),
      log: keptLog(),
    })
  function hostOf(n: number) {
    const { hostId, name, home } = net.hosts[n] as ThrowawayHosts['hosts'][number]
    return { hostId, name, agentUrl: home.agentUrl }
  }

  beforeAll(async () => {
    db = await createTestDatabase(inject('engineConnectionString'))
    gate = await StepGate.install(db)
    net = await startThrowawayHosts(3, { bundle: inject('agentBundle'), instances: 12 })
    for (const n of [0, 1, 2]) {
      const { hostId, name, agentUrl } = hostOf(n)
      await db.pool.query('INSERT INTO host (id, name, "agentUrl") VALUES ($1, $2, $3)', [
        hostId,
        name,
        agentUrl,
      ])
    }
    controller = start()
    await carryOut(
      'create-instance',
      {
        instanceId: firstId,
        name: 'one',
        settings: {},
        ownerPasswordVerifier: scramVerifier(password),
      },
      hostOf(0).hostId,
    )
    await ask(await primary(), 'create table ledger (n int primary key)')
  }, 180_000)
  afterAll(async () => {
    await controller?.stop()
    await gate?.remove()
    await net?.remove()
    await db?.drop()
  })

  async function submit<K extends OperationKind>(kind: K, input: unknown, hostId?: string) {
    return submitOperation(db.as.web, { kind, input: input as OperationInput<K>, actor, hostId })
  }
  const ended = (operationId: string, boundMs = 60_000) =>
    waitUntil(
      'the operation ended',
      async () => {
        const seen = await showOperation(db.pool, operationId)
        return seen?.endedAt ? seen : null
      },
      boundMs,
    )
  /** Submits an operation that has to succeed. */
  async function carryOut<K extends OperationKind>(kind: K, input: unknown, hostId?: string) {
    const { operationId } = await submit(kind, input, hostId)
    const operation = await ended(operationId)
    if (operation.state !== 'succeeded') {
      const log = await readOperationLog(db.pool, { operationId })
      throw new Error(`${kind}: ${JSON.stringify(operation.fault)}\n${log.map((l) => l.text).join('\n')}`)
    }
    return operation
  }
  const cluster = async () => (await readClusterOf(db.pool, firstId)) as ClusterObserved
  const primary = async () => primaryOf(await cluster()) as ClusterMember
  const member = async (name: string) =>
    (await cluster()).members.find((m) => m.name === name) as ClusterMember
  async function ask<T>(m: ClusterMember, statement: string): Promise<T[]> {
    const client = new pg.Client({
      ...clientTls,
      host: m.connection?.host ?? '',
      port: m.connection?.port ?? 0,
      user: 'postgres',
      database: 'postgres',
      password,
      connectionTimeoutMillis: 3_000,
    })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query(statement)).rows as T[]
    } finally {
      await client.end()
    }
  }
  const addresses = new Map<string, { host: string; port: number }>()
  const ledger = async () => {
    for (const m of (await cluster()).members) if (m.connection) addresses.set(m.name, m.connection)
    return new WriteLedger({ user: 'postgres', database: 'postgres', password }, () => [
      ...addresses.values(),
    ])
  }
  const lost = async (acknowledged: readonly number[]) => {
    const rows = await ask<{ n: number }>(await primary(), 'select n from ledger')
    const kept = new Set(rows.map((r) => r.n))
    return acknowledged.filter((n) => !kept.has(n))
  }
  const wipe = async () => ask(await primary(), 'truncate ledger')
  afterEach(() => gate?.arm(false))

  test('two standbys on other hosts are made and seen to follow', async () => {
    for (const n of [1, 2])
      await carryOut(
        'create-standby',
        { instanceId: randomUUID(), name: `one-${n + 1}`, clusterId: (await cluster()).clusterId },
        hostOf(n).hostId,
      )
    const seen = await cluster()
    expect(seen.members.map((m) => [m.name, m.hostName, m.memberRole, m.role])).toEqual([
      ['one', 'h1', 'primary', 'primary'],
      ['one-2', 'h2', 'standby', 'standby'],
      ['one-3', 'h3', 'standby', 'standby'],
    ])
    expect(judgeCandidates(seen, 'switchover').map((c) => c.blockers)).toEqual([[], []])
    expect(JSON.stringify(await showOperation(db.pool, (await operations())[0] as string))).not.toContain(
      'SCRAM',
    )
  })
  const operations = async () =>
    (await db.pool.query<{ id: string }>('SELECT id FROM operation ORDER BY "createdAt" DESC')).rows.map(
      (r) => r.id,
    )

  test('commits wait for the standbys that were chosen', async () => {
    const { clusterId, members } = await cluster()
    await carryOut('change-synchronous', {
      clusterId,
      instanceId: firstId,
      synchronous: {
        method: 'any',
        count: 1,
        instanceIds: members.filter((m) => m.memberRole === 'standby').map((m) => m.instanceId),
      },
      commitMode: 'on',
    })
    expect(await ask(await primary(), 'show synchronous_standby_names')).toEqual([
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
        await carryOut('switchover-cluster', {
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
    expect(await lost(writer.acknowledged)).toEqual([])
    expect(await ask(await primary(), 'show synchronous_standby_names')).toEqual([
      { synchronous_standby_names: 'ANY 1 ("one-2", "one-3")' },
    ])
    const slots = await ask(await member('one-2'), 'select slot_name from pg_replication_slots')
    expect(slots).toEqual([])
  })

  test('a standby that has fallen silent does not hold up the switchover to another one (F8)', async () => {
    await wipe()
    const writer = await ledger()
    const [candidate, silent] = (await cluster()).members.filter((m) => m.memberRole === 'standby') as [
      ClusterMember,
      ClusterMember,
    ]
    const [receiver] = await ask<{ pid: number }>(silent, 'select pid from pg_stat_wal_receiver')
    const { pid } = receiver as { pid: number }
    try {
      expect(await writer.writesAgain(10_000)).toBe(true)
      process.kill(pid, 'SIGSTOP')
      writer.takeLongestGap()
      const switchover = carryOut('switchover-cluster', {
        clusterId: (await cluster()).clusterId,
        instanceId: candidate.instanceId,
      })
      await waitUntil(
        'the other one is the primary',
        async () => (await primary()).name === candidate.name,
        30_000,
      )
      expect(await writer.writesAgain(10_000)).toBe(true)
      const gap = Math.round(writer.takeLongestGap())
      console.log(`gap of the switchover past a silent standby: ${gap} ms`)
      expect(gap).toBeLessThan(5_000)
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
      const pid = (await showInstance(db.pool, former.instanceId))?.postmasterPid as number
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
      const operation = await carryOut('failover-cluster', { clusterId, instanceId: best?.instanceId })
      expect(await writer.writesAgain(10_000)).toBe(true)
      console.log(`from the command to the end of the failover: ${Math.round(performance.now() - begun)} ms`)
      expect(operation.result).toMatchObject({ lossBytes: 0, fenced: true })
    } finally {
      await writer.stop()
    }
    expect(await lost(writer.acknowledged)).toEqual([])
    const fenced = await waitUntil('the fence is seen', async () => {
      const m = await member(former.name)
      return m.fenced ? m : null
    })
    expect(fenced).toMatchObject({ memberRole: 'fenced', state: 'stopped' })
    const { operationId } = await submit('start-instance', { instanceId: former.instanceId })
    expect((await ended(operationId)).fault?.code).toBe('instance.fenced')
    await carryOut('rejoin-standby', { instanceId: former.instanceId })
    expect(await member(former.name)).toMatchObject({ memberRole: 'standby', role: 'standby', fenced: null })
  })

  test('a primary whose host is cut off right after a switchover is only left behind when that is typed, and is fenced when it answers', async () => {
    const { candidate: former, operationId, at: promoting } = await switchoverHeldAt('start', 'promote')
    // of the primary before it no report came, and of this one none comes before it is gone
    await db.pool.query(`UPDATE cluster SET holdings = jsonb_set(holdings, '{weaker}', 'null')`)
    await gate.open(operationId, promoting, false)
    const at = await heldAt(operationId, 'end', 'repair')
    const { clusterId, members, primaryInstanceId } = await cluster()
    expect(primaryInstanceId).toBe(former.instanceId)
    const host = net.hosts.find((h) => h.name === former.hostName) as ThrowawayHosts['hosts'][number]
    const candidate = members.find((m) => m.instanceId !== primaryInstanceId) as ClusterMember
    net.network.partition(host.network)
    await letGo(operationId, at)
    await waitUntil('the host is seen silent', async () => (await primary()).hostState !== 'online', 40_000)
    const refused = await submit('failover-cluster', { clusterId, instanceId: candidate.instanceId })
    expect((await ended(refused.operationId)).fault).toMatchObject({ code: 'failover.host_unreachable' })
    await carryOut('failover-cluster', {
      clusterId,
      instanceId: candidate.instanceId,
      unreachableHost: former.hostName,
    })
    expect(await ask(await primary(), 'insert into ledger values (-1) returning n')).toEqual([{ n: -1 }])
    net.network.heal(host.network)
    const fenced = await waitUntil('it is fenced', async () => (await member(former.name)).fenced, 30_000)
    expect(fenced.reason).toContain('took over')
    await waitUntil(
      'it is free',
      async () => !(await showInstance(db.pool, former.instanceId))?.operation,
      30_000,
    )
    await carryOut('rejoin-standby', { instanceId: former.instanceId })
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
    const { operationId } = await submit('switchover-cluster', {
      clusterId: before.clusterId,
      instanceId: candidate.instanceId,
    })
    return { before, candidate, operationId, at: await heldAt(operationId, when, step) }
  }
  async function heldAt(operationId: string, when: Boundary['when'], step: string) {
    for (;;) {
      const at = await waitUntil(
        'the switchover comes to a boundary or ends',
        async () => (await gate.waiting(operationId)) ?? (await showOperation(db.pool, operationId))?.endedAt,
        60_000,
        15,
      )
      if (at instanceof Date) {
        const { state, fault } = (await showOperation(db.pool, operationId)) ?? {}
        throw new Error(`it came to no ${when} of ${step}: ${state} ${JSON.stringify(fault)}`)
      }
      if (at.step === step && at.when === when) return at
      await gate.open(operationId, at, false)
    }
  }
  const letGo = async (operationId: string, at: Boundary) => {
    await gate.arm(false)
    await gate.open(operationId, at, false)
  }

  /** A switchover that is cancelled at that boundary; the cancel is next in line there, but the controller may still be first. */
  async function cancelledAt(when: Boundary['when'], step: string) {
    for (;;) {
      const held = await switchoverHeldAt(when, step)
      const { operationId } = held
      const cancelled = cancelOperation(db.as.web, { operationId, actor }).catch((error) => error.fault)
      await waitUntil('the cancel is next', async () => {
        // a role sees what its own sessions do
        const { rows } = await db.as.web.pool.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
              AND query LIKE '%FROM operation WHERE id = $1 FOR NO KEY UPDATE' AND pid <> pg_backend_pid()`,
        )
        return rows.length === 1
      })
      await letGo(operationId, held.at)
      const answer = await cancelled
      if (answer?.code !== 'operation.past_no_return') {
        expect(answer).toEqual({ state: 'cancelling' })
        return held
      }
      expect(await ended(operationId)).toMatchObject({ state: 'succeeded' })
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
      const operation = await ended(operationId)
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
          ask<{ n: number }>(await primary(), 'insert into ledger values (-2) returning n').catch(() => null),
        30_000,
      )
      expect(written).toEqual([{ n: -2 }])
      await ask(await primary(), 'delete from ledger where n = -2')
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
    await expect(cancelOperation(db.as.web, { operationId, actor })).rejects.toMatchObject({
      fault: { code: 'operation.past_no_return', detail: expect.stringContaining('has begun') },
    })
    await letGo(operationId, at)
    expect(await ended(operationId)).toMatchObject({ state: 'succeeded' })
    expect((await cluster()).primaryInstanceId).toBe(candidate.instanceId)
    expect((await primary()).fenced).toBeNull()
  })

  test('a second operation on the cluster is refused at once, with the first one named', async () => {
    const { clusterId, members } = await cluster()
    const standbys = members.filter((m) => m.memberRole === 'standby')
    const first = await submit('switchover-cluster', { clusterId, instanceId: standbys[0]?.instanceId })
    await expect(submit('restart-instance', { instanceId: standbys[1]?.instanceId })).rejects.toMatchObject({
      blockingOperationId: first.operationId,
    })
    await ended(first.operationId)
  })

  test('a standby that is promoted has a cluster of its own, one that is removed leaves nothing', async () => {
    const { members } = await cluster()
    const standbys = members.filter((m) => m.memberRole === 'standby')
    const [a, b] = standbys as [ClusterMember, ClusterMember]
    await expect(
      submit('delete-instance', { instanceId: a.instanceId, confirmName: a.name }),
    ).rejects.toThrow('is a standby')
    await carryOut('promote-standby', { instanceId: a.instanceId, confirmName: a.name })
    const own = await readClusterOf(db.pool, a.instanceId)
    expect(own).toMatchObject({ primaryInstanceId: a.instanceId, synchronous: null })
    expect(own?.members).toHaveLength(1)
    await carryOut('remove-standby', { instanceId: b.instanceId, confirmName: b.name })
    const rest = (await readClusterOf(db.pool, (await primaryOfRest(members)).instanceId)) as ClusterObserved
    expect(rest.members).toHaveLength(1)
    expect(rest.synchronous).toBeNull()
    const [left] = await ask<{ n: number }>(
      rest.members[0] as ClusterMember,
      'select count(*)::int as n from pg_replication_slots',
    )
    expect(left).toEqual({ n: 0 })
  })
  const primaryOfRest = async (members: ClusterMember[]) =>
    members.find((m) => m.memberRole === 'primary') as ClusterMember

  test('none of all this made what is recorded look older than the cluster', async () => {
    expect(await listRestoredRecords(db.pool)).toEqual([])
  })
})
