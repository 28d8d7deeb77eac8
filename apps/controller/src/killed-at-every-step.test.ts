import { randomUUID } from 'node:crypto'
import { chmodSync, closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TaskResult } from '@floe/agent-contract'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { listIncidents, showInstance } from '@floe/db'
import {
  type ClusterMember,
  foreseeableMembers,
  type OperationKind,
  operationKinds,
  primaryOf,
  replicationLoginOf,
  slotNameOf,
} from '@floe/domain'
import { renameRolesInFiles, ThrowawayNetwork, useForeseeableRoles, waitUntil } from '@floe/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { ControllerProcess } from './testing/controller-process'
import { type HostsFixture, hostsFixture } from './testing/hosts-fixture'
import { StepGate } from './testing/step-gate'
import type { WriteLedger } from './testing/write-ledger'

const missing = ThrowawayNetwork.missing()
vi.setConfig({ testTimeout: 300_000 })

/**
 * Every kind of operation on a cluster of real engines, with kill -9 at each boundary between two of its steps: the moment
 * at which what a step's task did is about to be written as done, and with `./floe test --long` also the one at which a step
 * is about to be written as begun.
 *
 * That repeats one guarantee of the step runner and of the agent's tasks for each kind, and takes many minutes. So without
 * `--long` only these kinds are walked (`walkAlways`): what makes an instance from nothing, and one from another host's;
 * what changes one member, and all one after another and may take it back; what hands over between two that live, also for
 * another engine, and from one that is dead; what brings a member back by a new copy; and what takes one away.
 */
const long = process.env.FLOE_TEST_LONG === '1'
/** Of the others of those, without `--long`, every other step is walked: who hands over must not be in two minds at any. */
const everyStep = (kind: OperationKind) =>
  long || kind === 'switchover-cluster' || kind === 'failover-cluster'

/** Which kinds a walk takes through whose death. */
type Walks = { controller?: OperationKind[]; agents?: OperationKind[] }

describe.skipIf(missing !== null)(`killed at every step${missing ? ` (${missing})` : ''}`, () => {
  let fixture: HostsFixture
  let gate: StepGate
  let controller: ControllerProcess
  let writer: WriteLedger | undefined
  const one = randomUUID()
  const [two, three] = [randomUUID(), randomUUID()]
  const four = randomUUID()
  /** Kinds whose boundaries were walked, by whose death; and those that some walk promises, whether it was taken or not. */
  const walked = { controller: new Set<OperationKind>(), agents: new Set<OperationKind>() }
  const promised = { controller: new Set<OperationKind>(), agents: new Set<OperationKind>() }

  /** A test that walks what it promises; but for `walkAlways` only with `--long`. */
  function walk(name: string, walks: Walks, take: () => Promise<void>, taken = long) {
    const deaths = ['controller', 'agents'] as const
    for (const who of deaths) for (const kind of walks[who] ?? []) promised[who].add(kind)
    if (!taken) return
    test(name, async () => {
      await take()
      for (const who of deaths) expect([...walked[who]]).toEqual(expect.arrayContaining(walks[who] ?? []))
    })
  }
  const walkAlways = (name: string, walks: Walks, take: () => Promise<void>) => walk(name, walks, take, true)

  beforeAll(async () => {
    fixture = await hostsFixture({ hosts: 3 })
    gate = await StepGate.install(fixture.db)
    controller = fixture.startProcess()
    await fixture.allSeen()
  }, 180_000)
  afterEach(async () => {
    await writer?.stop()
    writer = undefined
    await gate?.arm(false)
  })
  afterAll(async () => {
    await gate?.remove()
    await fixture?.remove()
  }, 60_000)

  const cluster = () => fixture.clusterOf(one)
  const member = (name: string) => fixture.memberOf(one, name)

  /** Submits an operation and kills the controller at the boundaries; it has to succeed, each task started once. */
  async function withControllerKilled(kind: OperationKind, input: object, hostId?: string) {
    await gate.arm(true)
    const operationId = await fixture.submit(kind, input, hostId)
    const crossed: string[] = []
    for (;;) {
      const at = await waitUntil(
        `${kind} comes to a boundary or ends, after ${crossed.at(-1)}`,
        async () =>
          (await gate.waiting(operationId)) ?? ((await fixture.endedNow(operationId)) ? 'ended' : null),
        150_000,
        15,
      )
      if (at === 'ended') break
      crossed.push(`${at.when} of ${at.step}`)
      const passed = at.when === 'start' ? !long : !everyStep(kind) && crossed.length % 4 === 0
      if (passed) {
        await gate.open(operationId, at, false)
        continue
      }
      await controller.end('SIGKILL')
      await gate.open(operationId, at, true)
      controller = fixture.startProcess()
    }
    const operation = await fixture.succeeded(operationId)
    expect(crossed).toEqual(operation.steps.flatMap((s) => [`start of ${s.name}`, `end of ${s.name}`]))
    expect(operation.steps.every((s) => s.attempt === 1)).toBe(true)
    const lines = fixture.taskLines(operationId)
    const of = (event: string) => lines.filter((l) => l.event === event).map((l) => `${l.step}#${l.attempt}`)
    expect(new Set(of('task.started')).size).toBe(of('task.started').length)
    expect(of('task.ended').sort()).toEqual(of('task.started').sort())
    expect(lines.filter((l) => l.event === 'task.ended' && l.state !== 'succeeded')).toEqual([])
    expect(of('task.resumed')).toEqual([])
    walked.controller.add(kind)
    return operation
  }

  /** The same with every agent killed in the middle of the steps' tasks (or when the step has begun), and started again. */
  async function withAgentsKilled(kind: OperationKind, input: object, hostId?: string) {
    await gate.arm(true)
    const operationId = await fixture.submit(kind, input, hostId)
    let killedAt = new Date(0)
    let begun = 0
    for (;;) {
      const at = await waitUntil(
        `${kind} comes to a boundary or ends`,
        async () =>
          (await gate.waiting(operationId)) ?? ((await fixture.endedNow(operationId)) ? 'ended' : null),
        150_000,
        15,
      )
      if (at === 'ended') break
      const before = fixture.taskLines(operationId).length
      await gate.open(operationId, at, false)
      if (at.when === 'end' || (begun++ % 2 === 1 && !everyStep(kind))) continue
      await waitUntil(
        'a task of the step has begun, or the step has none',
        async () =>
          fixture.taskLines(operationId).length > before ||
          (await gate.waiting(operationId)) ||
          (await fixture.endedNow(operationId)),
        60_000,
        5,
      )
      await Promise.all(fixture.net.hosts.map(({ agent }) => agent.end('SIGKILL')))
      killedAt = new Date()
      for (const { agent } of fixture.net.hosts) agent.startUnseen()
    }
    // the last step may need none of them
    await waitUntil(
      'all agents are back',
      async () => {
        const { rows } = await fixture.db.pool.query<{ observedAt: Date | null }>(
          'SELECT "observedAt" FROM host',
        )
        return rows.every(({ observedAt }) => observedAt !== null && observedAt > killedAt)
      },
      60_000,
    )
    const kept = fixture.keptTasks(operationId)
    expect(new Set(kept).size).toBe(kept.length)
    const started = fixture.taskLines(operationId).filter((l) => l.event === 'task.started')
    const keys = started.map((l) => `${l.step}#${l.attempt}`)
    expect(new Set(keys).size).toBe(keys.length)
    walked.agents.add(kind)
    return operationId
  }
  const throughDeadAgents = async (kind: OperationKind, input: object, hostId?: string) =>
    fixture.succeeded(await withAgentsKilled(kind, input, hostId))

  /** What lies on the hosts is what the members need and nothing else. */
  async function expectNothingLeft() {
    const seen = await waitUntil(
      'all members are seen running',
      async () => {
        const c = await cluster()
        return c.members.every((m) => m.state === 'running' || m.memberRole === 'fenced') ? c : null
      },
      30_000,
    )
    const { rows } = await fixture.db.pool.query<{ place: string }>(
      `SELECT h.name || '/' || i.name AS place FROM instance i JOIN host h ON h.id = i."hostId"
        WHERE i."deletedAt" IS NULL ORDER BY 1`,
    )
    const places = rows.map((r) => r.place)
    // an agent that writes a file at this very moment has another one beside it
    const traces = await vi.waitFor(async () => {
      const found = await fixture.traces(one)
      expect({ directories: found.directories, registered: found.registered }).toEqual({
        directories: places,
        registered: places,
      })
      return found
    }, 10_000)
    const following = seen.members.filter((m) => m.memberRole === 'standby')
    expect(traces.slots).toEqual(
      following.map((m) => `${primaryOf(seen)?.name}: ${slotNameOf(m.name)}`).sort(),
    )
    // a member that was a standby once may become one again: its role stays as long as it is a member
    const names = seen.members.map(replicationLoginOf)
    expect(traces.roles.filter((r) => !names.includes(r))).toEqual([])
    for (const m of following) expect(traces.roles).toContain(replicationLoginOf(m))
    await waitUntil('no incident of an instance or operation is open', async () =>
      (await listIncidents(fixture.db.pool)).every((i) => i.instanceId === null && i.operationId === null),
    )
  }

  async function writing() {
    await fixture.ask(primaryOf(await cluster()), 'truncate ledger')
    writer = await fixture.ledger(one)
    expect(await writer.writesAgain(10_000)).toBe(true)
    return writer
  }
  async function expectNoneLost(ledger: WriteLedger) {
    expect(await ledger.writesAgain(15_000)).toBe(true)
    await ledger.stop()
    expect(ledger.acknowledged.length).toBeGreaterThan(20)
    expect(await fixture.lost(one, ledger.acknowledged)).toEqual([])
  }

  walkAlways('create-instance', { controller: ['create-instance'] }, async () => {
    await withControllerKilled(
      'create-instance',
      { instanceId: one, name: 'one', settings: {}, ownerPasswordVerifier: scramVerifier(fixture.password) },
      fixture.host(1).hostId,
    )
    await fixture.ask(await member('one'), 'create table ledger (n int primary key)')
    await expectNothingLeft()
  })

  walkAlways('create-standby', { controller: ['create-standby'] }, async () => {
    const { clusterId } = await cluster()
    await withControllerKilled(
      'create-standby',
      { instanceId: two, name: 'one-2', clusterId },
      fixture.host(2).hostId,
    )
    await expectNothingLeft()
  })

  walkAlways('create-standby, the agents killed', { agents: ['create-standby'] }, async () => {
    const { clusterId } = await cluster()
    await throughDeadAgents(
      'create-standby',
      { instanceId: three, name: 'one-3', clusterId },
      fixture.host(3).hostId,
    )
    await expectNothingLeft()
  })

  walk('change-synchronous, the agents killed', { agents: ['change-synchronous'] }, async () => {
    const { clusterId } = await cluster()
    await throughDeadAgents('change-synchronous', {
      clusterId,
      instanceId: one,
      synchronous: { method: 'first', count: 1, instanceIds: [three] },
      commitMode: 'local',
    })
  })

  // what follows needs it: an asynchronous failover has no proof that nothing is lost
  walkAlways('change-synchronous', { controller: ['change-synchronous'] }, async () => {
    const { clusterId } = await cluster()
    await withControllerKilled('change-synchronous', {
      clusterId,
      instanceId: one,
      synchronous: { method: 'any', count: 1, instanceIds: [two, three] },
      commitMode: 'on',
    })
    expect(await fixture.ask(await member('one'), 'show synchronous_standby_names')).toEqual([
      { synchronous_standby_names: 'ANY 1 ("one-2", "one-3")' },
    ])
  })

  const commitModeKind: OperationKind[] = ['change-commit-mode']
  walk('change-commit-mode', { controller: commitModeKind, agents: commitModeKind }, async () => {
    const of = { instanceId: one, database: 'postgres', role: null }
    await throughDeadAgents('change-commit-mode', { ...of, commitMode: 'off' })
    expect(await fixture.ask(await member('one'), 'show synchronous_commit')).toEqual([
      { synchronous_commit: 'off' },
    ])
    await withControllerKilled('change-commit-mode', { ...of, commitMode: 'remote_apply' })
    expect(await fixture.ask(await member('one'), 'show synchronous_commit')).toEqual([
      { synchronous_commit: 'remote_apply' },
    ])
  })

  walk('change-automatic', { controller: ['change-automatic'], agents: ['change-automatic'] }, async () => {
    const { clusterId } = await cluster()
    const of = { clusterId, instanceId: one }
    const synchronous = (strict: boolean) =>
      fixture.carryOut('change-synchronous', {
        ...of,
        synchronous: { method: 'any', count: 1, instanceIds: [two, three], strict },
        commitMode: 'on',
      })
    await synchronous(true)
    await waitUntil('the timeline is recorded', async () => (await cluster()).holdings?.timeline, 20_000)
    await throughDeadAgents('change-automatic', { ...of, automatic: { minIntervalMs: 0 } })
    expect((await cluster()).automatic).toMatchObject({ minIntervalMs: 0 })
    await waitUntil(
      'every agent was told',
      async () => (await cluster()).members.every((m) => m.primaryKnown?.heldBack),
      20_000,
    )
    await withControllerKilled('change-automatic', { ...of, automatic: null })
    expect((await cluster()).automatic).toBeNull()
    await waitUntil(
      'no agent holds one back',
      async () => (await cluster()).members.every((m) => !m.primaryKnown?.heldBack),
      20_000,
    )
    await gate.arm(false)
    await synchronous(false)
  })

  walkAlways('switchover-cluster', { controller: ['switchover-cluster'] }, async () => {
    const ledger = await writing()
    await withControllerKilled('switchover-cluster', {
      clusterId: (await cluster()).clusterId,
      instanceId: two,
    })
    expect((await cluster()).primaryInstanceId).toBe(two)
    await expectNoneLost(ledger)
    await expectNothingLeft()
  })

  walk('switchover-cluster, the agents killed', { agents: ['switchover-cluster'] }, async () => {
    const ledger = await writing()
    await throughDeadAgents('switchover-cluster', {
      clusterId: (await cluster()).clusterId,
      instanceId: one,
    })
    expect((await cluster()).primaryInstanceId).toBe(one)
    await expectNoneLost(ledger)
    await expectNothingLeft()
  })

  /** The primary's host gets another build of the engine; a switchover takes the cluster away from it, and then back. */
  async function upgradeMembers(who: keyof Walks, installed: string) {
    const primary = primaryOf(await cluster()) as ClusterMember
    const other = primary.instanceId === one ? two : one
    const build = await fixture.installEngine(fixture.hostOf(primary), installed)
    await waitUntil(
      'it is seen to run another one',
      async () => (await member(primary.name)).engine?.current === false,
    )
    const ledger = await writing()
    const through = who === 'controller' ? withControllerKilled : throughDeadAgents
    const { clusterId } = await cluster()
    await through('upgrade-members', {
      ...{ clusterId, instanceId: other, build, members: [primary.name], primary: primary.name },
      switchover: true,
    })
    expect((await cluster()).primaryInstanceId).toBe(other)
    expect((await member(primary.name)).engine).toEqual({ build, running: build, current: true })
    await expectNoneLost(ledger)
    await expectNothingLeft()
    await gate.arm(false)
    await fixture.carryOut('switchover-cluster', { clusterId, instanceId: primary.instanceId })
  }
  walkAlways('upgrade-members', { controller: ['upgrade-members'] }, () =>
    upgradeMembers('controller', 'release-walked'),
  )
  walk('upgrade-members, the agents killed', { agents: ['upgrade-members'] }, () =>
    upgradeMembers('agents', 'release-walked-again'),
  )

  /** Kills the primary's engine and waits until that is seen. */
  async function crashPrimary() {
    const former = primaryOf(await cluster()) as ClusterMember
    const pid = (await showInstance(fixture.db.pool, former.instanceId))?.postmasterPid as number
    process.kill(pid, 'SIGKILL')
    await waitUntil('the crash is seen', async () => primaryOf(await cluster())?.state === 'crashed', 30_000)
    return former
  }

  async function resultOf<T>(operationId: string, step: string): Promise<T> {
    const { rows } = await fixture.db.pool.query<{ result: T }>(
      'SELECT result FROM operation_step WHERE "operationId" = $1 AND name = $2',
      [operationId, step],
    )
    return rows[0]?.result as T
  }

  async function leftBehindBySilence(operationId: string): Promise<string[]> {
    const { rows } = await fixture.db.pool.query<{ name: string; code: string }>(
      `SELECT DISTINCT m.key AS name, m.value->'fault'->>'code' AS code
         FROM operation_step s, jsonb_each(s.result) m
        WHERE s."operationId" = $1 AND s.name IN ('isolate', 'repoint') AND jsonb_typeof(m.value->'fault') = 'object'`,
      [operationId],
    )
    expect(rows.filter(({ code }) => code !== 'agent.unreachable')).toEqual([])
    return rows.map(({ name }) => name)
  }

  walk(
    'failover-cluster, then rejoin-standby by pg_rewind',
    { controller: ['failover-cluster', 'rejoin-standby', 'drop-kept-aside'], agents: ['drop-kept-aside'] },
    async () => {
      const ledger = await writing()
      const former = await crashPrimary()
      await withControllerKilled('failover-cluster', {
        clusterId: (await cluster()).clusterId,
        instanceId: two,
      })
      expect((await cluster()).primaryInstanceId).toBe(two)
      await expectNoneLost(ledger)
      expect((await member(former.name)).memberRole).toBe('fenced')
      const rejoined = await withControllerKilled('rejoin-standby', { instanceId: former.instanceId })
      expect(await member(former.name)).toMatchObject({
        memberRole: 'standby',
        role: 'standby',
        fenced: null,
      })
      await expectNothingLeft()
      // what it had alone when it was killed was told exactly, and is kept where there was any
      const own = await resultOf<TaskResult<'keep-aside'>>(rejoined.operationId, 'keep')
      expect(own).toMatchObject({
        discarded: false,
        ownBytes: expect.any(Number),
        ownCommits: expect.any(Number),
      })
      expect(own.keptAside !== null).toBe((own.ownBytes ?? 0) > 0)
      const of = { instanceId: former.instanceId, confirmName: former.name }
      const keptAside = own.keptAside?.name ?? 'kept-aside-20260101T000000000Z-1'
      await withControllerKilled('drop-kept-aside', { ...of, keptAside })
      await throughDeadAgents('drop-kept-aside', { ...of, keptAside })
      await expectNothingLeft()
    },
  )

  walkAlways(
    'failover-cluster, the agents killed, then rejoin-standby by a new copy',
    { controller: ['rejoin-standby'], agents: ['failover-cluster'] },
    async () => {
      const ledger = await writing()
      const former = await crashPrimary()
      const { operationId } = await throughDeadAgents('failover-cluster', {
        clusterId: (await cluster()).clusterId,
        instanceId: one,
      })
      expect((await cluster()).primaryInstanceId).toBe(one)
      await expectNoneLost(ledger)
      // a host that was silent for a while before is not waited for long: its standby is left behind, and can be rejoined
      for (const name of await leftBehindBySilence(operationId)) {
        const { instanceId } = await member(name)
        await withControllerKilled('rejoin-standby', { instanceId })
      }
      await withControllerKilled('rejoin-standby', { instanceId: former.instanceId, method: 'clone' })
      expect(await member(former.name)).toMatchObject({
        memberRole: 'standby',
        role: 'standby',
        fenced: null,
      })
      await expectNothingLeft()
    },
  )

  walk(
    'fence-instance',
    { controller: ['fence-instance', 'rejoin-standby'], agents: ['fence-instance', 'rejoin-standby'] },
    async () => {
      await withControllerKilled('fence-instance', { instanceId: three })
      expect(await member('one-3')).toMatchObject({ memberRole: 'fenced' })
      await withControllerKilled('rejoin-standby', { instanceId: three })
      await expectNothingLeft()
      await throughDeadAgents('fence-instance', { instanceId: three })
      expect(await member('one-3')).toMatchObject({ memberRole: 'fenced' })
      await throughDeadAgents('rejoin-standby', { instanceId: three })
      await expectNothingLeft()
    },
  )

  const maxConnections = async (value: string) => {
    const { clusterId, members } = await cluster()
    const changes = [{ name: 'max_connections', value }]
    return {
      clusterId,
      instanceId: one,
      members: members.map(({ instanceId }) => ({ instanceId, changes })),
    }
  }
  async function expectMaxConnections(value: string) {
    for (const m of (await cluster()).members)
      expect(await fixture.ask(m, 'show max_connections')).toEqual([{ max_connections: value }])
  }

  walkAlways('change-cluster-settings', { controller: ['change-cluster-settings'] }, async () => {
    await withControllerKilled('change-cluster-settings', await maxConnections('110'))
    await expectMaxConnections('110')
    await expectNothingLeft()
  })

  walk('change-cluster-settings, the agents killed', { agents: ['change-cluster-settings'] }, async () => {
    await throughDeadAgents('change-cluster-settings', await maxConnections('90'))
    await expectMaxConnections('90')
    await expectNothingLeft()
  })

  walk(
    'change-page-repair',
    { controller: ['change-page-repair'], agents: ['change-page-repair'] },
    async () => {
      const { clusterId } = await cluster()
      const of = { clusterId, instanceId: one }
      await throughDeadAgents('change-page-repair', { ...of, pageRepair: { enabled: false, excluded: [] } })
      await withControllerKilled('change-page-repair', {
        ...of,
        pageRepair: { enabled: true, excluded: [three] },
      })
      await expectNothingLeft()
    },
  )

  /** A base backup without WAL: a member's own user copies its files and, later on, its WAL. */
  const backUp = (member: ClusterMember, room: string) =>
    fixture.ask(
      member,
      `select pg_backup_start('walk', true);
        copy (select 1) to program 'cat > /dev/null; cp -R . ${room}/base; cd ${room}/base; rm -rf postmaster.pid pg_replslot/* pg_wal/*';
        copy (select replace(encode(convert_to(labelfile, 'utf8'), 'base64'), E'\\n', '') from pg_backup_stop(false))
          to program 'base64 -d > ${room}/base/backup_label'`,
    )
  const copyWal = (member: ClusterMember, room: string) =>
    fixture.ask(
      member,
      `copy (select 1) to program 'cat > /dev/null; mkdir -p ${room}/wal; cp pg_wal/0000* ${room}/wal/'`,
    )
  async function withRoom(run: (room: string) => Promise<void>) {
    const room = mkdtempSync(join(tmpdir(), 'floe-restores-'))
    chmodSync(room, 0o777)
    try {
      await run(room)
    } finally {
      rmSync(room, { recursive: true, force: true })
    }
  }

  /** Destroys a sector of every fourth page of a file. */
  function tearPages(path: string, blocks: number) {
    const fd = openSync(path, 'r+')
    for (let block = 0; block < blocks; block += 4)
      writeSync(fd, Buffer.alloc(512, 0xa5), 0, 512, block * 8_192 + 4_096)
    closeSync(fd)
  }

  /**
   * All members end at once; the primary is torn, and has WAL that no standby got. A standby’s own pages, which only an engine
   * that has written them can have torn, and what a base backup gives, are the agent’s test.
   */
  async function recoverCluster(who: keyof Walks, room: string) {
    await gate.arm(false)
    const before = await cluster()
    const primary = primaryOf(before) as ClusterMember
    const standbys = before.members.filter((m) => m.memberRole === 'standby')
    await backUp(primary, room)
    await copyWal(primary, room)
    const table = `torn_${who}`
    const images = ['full_page_writes', 'polar_page_repair_guard']
    for (const setting of images) await fixture.ask(primary, `alter system set ${setting} = off`)
    await fixture.ask(primary, 'select pg_reload_conf()')
    await fixture.ask(
      primary,
      `create table ${table} as select n as a, 0 as b, repeat(md5(n::text), 6) as c from generate_series(1, 4000) n`,
    )
    await waitUntil('no images are written', async () => {
      const [row] = await fixture.ask<{ on: string }>(
        primary,
        `select current_setting('full_page_writes') as on`,
      )
      return row?.on === 'off'
    })
    await fixture.ask(primary, `vacuum ${table}`)
    await fixture.ask(primary, 'checkpoint')
    const [file] = await fixture.ask<{ path: string; blocks: number }>(
      primary,
      `select pg_relation_filepath('${table}') as path, (pg_relation_size('${table}') / 8192)::int as blocks`,
    )
    const caughtUp = async () => {
      const [row] = await fixture.ask<{ lsn: string }>(
        primary,
        'select pg_current_wal_flush_lsn()::text as lsn',
      )
      for (const m of standbys)
        await waitUntil('a standby has replayed it', async () => {
          const [seen] = await fixture.ask<{ there: boolean }>(
            m,
            `select pg_last_wal_replay_lsn() >= '${row?.lsn}'::pg_lsn as there`,
          )
          return seen?.there
        })
    }
    await caughtUp()
    for (const m of standbys) await fixture.ask(m, 'checkpoint')
    await fixture.ask(primary, `update ${table} set b = b + 1`)
    await caughtUp()
    const stop = (m: ClusterMember) =>
      fixture.carryOut('stop-instance', { instanceId: m.instanceId, mode: 'immediate' })
    for (const m of standbys) await stop(m)
    await fixture.ask(
      primary,
      `set synchronous_commit = local; update ${table} set b = b + 1 where a % 7 = 0`,
    )
    const sum = `select count(*)::int as n, sum(b)::int as b from ${table}`
    const truth = await fixture.ask(primary, sum)
    await copyWal(primary, room)
    await stop(primary)
    tearPages(join(fixture.directoryOf(primary), 'pgdata', file?.path as string), file?.blocks as number)
    await waitUntil('all are seen stopped', async () =>
      (await cluster()).members.every((m) => m.state === 'stopped'),
    )
    const through = who === 'controller' ? withControllerKilled : throughDeadAgents
    const { result } = await through('recover-cluster', {
      clusterId: before.clusterId,
      instanceId: primary.instanceId,
      confirmName: primary.name,
      backupDirectory: `${room}/base`,
      walDirectory: `${room}/wal`,
    })
    expect(result).toMatchObject({ left: [], notStarted: [] })
    expect(existsSync(join(fixture.directoryOf(primary), 'restored-pages'))).toBe(false)
    expect(result?.broughtBytes).toBeGreaterThan(0)
    for (const m of [primary, ...standbys])
      expect(existsSync(join(fixture.directoryOf(m), 'pgdata/page_repair.copies'))).toBe(false)
    await caughtUp()
    for (const m of [primary, ...standbys]) expect(await fixture.ask(m, sum)).toEqual(truth)
    for (const setting of images) await fixture.ask(primary, `alter system reset ${setting}`)
    await fixture.ask(primary, 'select pg_reload_conf()')
    await fixture.ask(primary, `drop table ${table}`)
    await expectNothingLeft()
  }
  walk('recover-cluster', { controller: ['recover-cluster'] }, () =>
    withRoom((room) => recoverCluster('controller', room)),
  )
  walk('recover-cluster, the agents killed', { agents: ['recover-cluster'] }, () =>
    withRoom((room) => recoverCluster('agents', room)),
  )

  /**
   * Every member with roles that anybody could foresee, as an earlier version left them: in what agents know, in the
   * catalog, in pg_hba.conf, and in what standbys follow by.
   */
  async function asBeforeRandomRoles() {
    const { members } = await cluster()
    const homeOf = (m: ClusterMember) => fixture.hostOf(m).home
    await Promise.all(fixture.net.hosts.map(({ agent }) => agent.end('SIGKILL')))
    const renamed = members.flatMap((m) => useForeseeableRoles(homeOf(m), m.instanceId))
    for (const m of members) renameRolesInFiles(homeOf(m), m.instanceId, renamed)
    const primary = primaryOf(await cluster())
    // a host that was dead when page repair was wired has a role that the primary does not know yet
    const known = new Set(
      (await fixture.ask<{ role: string }>(primary, 'select rolname as role from pg_roles')).map(
        (r) => r.role,
      ),
    )
    for (const { role, former } of renamed)
      if (known.has(role)) await fixture.ask(primary, `alter role ${role} rename to ${former}`)
    for (const m of members) await fixture.ask(m, 'select pg_reload_conf()')
    for (const { agent } of fixture.net.hosts) agent.startUnseen()
    await waitUntil(
      'the roles of before are reported, and standbys stream as them',
      async () => {
        const now = await cluster()
        const seen = await fixture.ask<{ role: string }>(
          primary,
          `select usename as role from pg_stat_replication where state = 'streaming'`,
        )
        return (
          foreseeableMembers(now.members, now.pageRepair).length === members.length &&
          seen.length === members.length - 1 &&
          seen.every(({ role }) => !/_[0-9a-f]{16}$/.test(role))
        )
      },
      30_000,
    )
  }

  async function renewRoles(who: keyof Walks) {
    await asBeforeRandomRoles()
    const pids = async () =>
      Promise.all(
        [one, two, three].map(async (id) => (await showInstance(fixture.db.pool, id))?.postmasterPid),
      )
    const before = await pids()
    const ledger = await writing()
    const through = who === 'controller' ? withControllerKilled : throughDeadAgents
    const { result } = await through('renew-roles', {
      clusterId: (await cluster()).clusterId,
      instanceId: one,
    })
    // the primary too, where it was a standby once
    expect(result).toMatchObject({ renewed: expect.arrayContaining(['one-2', 'one-3']), left: [] })
    await expectNoneLost(ledger)
    // nothing was restarted, and commits wait for whom they did
    expect(await pids()).toEqual(before)
    const primary = await member('one')
    expect(await fixture.ask(primary, 'show synchronous_standby_names')).toEqual([
      { synchronous_standby_names: 'ANY 1 ("one-2", "one-3")' },
    ])
    const now = await cluster()
    expect(foreseeableMembers(now.members, now.pageRepair)).toEqual([])
    const foreseeable = '^floe_(standby|repair)_.*(?<!_[0-9a-f]{16})$'
    expect(
      await fixture.ask(primary, `select rolname from pg_roles where rolname ~ '${foreseeable}'`),
    ).toEqual([])
    for (const m of now.members)
      expect(
        await fixture.ask(
          m,
          `select u from pg_hba_file_rules, unnest(user_name) u where u ~ '${foreseeable}'`,
        ),
      ).toEqual([])
    await waitUntil('both standbys stream as their new roles', async () => {
      const seen = await fixture.ask<{ role: string }>(
        primary,
        `select usename as role from pg_stat_replication where state = 'streaming' and usename ~ '_[0-9a-f]{16}$'`,
      )
      return seen.length === 2
    })
    await expectNothingLeft()
  }
  walk('renew-roles', { controller: ['renew-roles'] }, () => renewRoles('controller'))
  walk('renew-roles, the agents killed', { agents: ['renew-roles'] }, () => renewRoles('agents'))

  /** The agent of a member's host has lost its registration and the copy of it; the engine runs on. */
  async function loseRegistration(instanceId: string) {
    const { hostId } = (await cluster()).members.find((m) => m.instanceId === instanceId) as ClusterMember
    const host = fixture.net.hosts.find((h) => h.hostId === hostId)
    if (!host) throw new Error(`no host ${hostId}`)
    await host.agent.end('SIGKILL')
    const { home, installation } = host.home
    rmSync(join(home, 'agent/instances', `${instanceId}.json`))
    rmSync(join(installation.instancesDirectory, instanceId, 'registration.json'))
    host.agent.startUnseen()
    await waitUntil('it is missing', async () =>
      (await listIncidents(fixture.db.pool)).some((i) => i.key === `instance-missing:${instanceId}`),
    )
  }

  async function adoptInstance(who: keyof Walks) {
    const before = await showInstance(fixture.db.pool, three)
    await loseRegistration(three)
    const through = who === 'controller' ? withControllerKilled : throughDeadAgents
    const { result } = await through('adopt-instance', { instanceId: three })
    expect(result).toMatchObject({ postmasterPid: before?.postmasterPid, port: before?.port })
    await waitUntil('it streams', async () => {
      const { replication } = primaryOf(await cluster()) as ClusterMember
      return replication?.standbys.some((s) => s.applicationName === 'one-3' && s.state === 'streaming')
    })
    await expectNothingLeft()
  }
  walk('adopt-instance', { controller: ['adopt-instance'] }, () => adoptInstance('controller'))
  walk('adopt-instance, the agents killed', { agents: ['adopt-instance'] }, () => adoptInstance('agents'))

  const driftIsSeen = () =>
    waitUntil('the drift is seen', async () => {
      const { rows } = await fixture.db.pool.query(
        `SELECT FROM instance WHERE id = $1 AND jsonb_array_length(observed->'settingDrift') > 0`,
        [one],
      )
      return rows.length > 0
    })

  const ofOneInstance: OperationKind[] = [
    'reload-instance',
    'restart-instance',
    'stop-instance',
    'start-instance',
    'require-tls',
    // it has a user of its own already; the change itself is walked by the agent's own test
    'separate-instance',
  ]
  async function lifeAndSettings(who: keyof Walks, value: string) {
    const through = who === 'controller' ? withControllerKilled : throughDeadAgents
    await through('change-settings', { instanceId: three, changes: [{ name: 'work_mem', value }] })
    for (const kind of ofOneInstance) await through(kind, { instanceId: three })
    // none is left, so it succeeds also where the kernel cannot limit
    await through('limit-instance', { instanceId: three, changes: { cpu: null } })
    await through('set-stall-length', { instanceId: three, after: '3s' })
    await through('reindex-database', { instanceId: one, database: 'postgres' })
    expect(await fixture.ask(await member('one-3'), 'show work_mem')).toEqual([{ work_mem: value }])
    await fixture.ask(primaryOf(await cluster()), `alter system set work_mem = '9MB'`)
    await fixture.ask(primaryOf(await cluster()), 'select pg_reload_conf()')
    await driftIsSeen()
    await through('resolve-drift', { instanceId: one, how: 'revert' })
    expect(await fixture.ask(await member('one'), 'show work_mem')).toEqual([{ work_mem: '4MB' }])
    await expectNothingLeft()
  }
  const lifeKinds: OperationKind[] = [
    'change-settings',
    ...ofOneInstance,
    'limit-instance',
    'set-stall-length',
    'reindex-database',
    'resolve-drift',
  ]
  walk('stop, start, restart, reload, settings and drift', { controller: lifeKinds }, () =>
    lifeAndSettings('controller', '8MB'),
  )
  walk('stop, start, restart, reload, settings and drift, the agents killed', { agents: lifeKinds }, () =>
    lifeAndSettings('agents', '10MB'),
  )

  const roleKinds: OperationKind[] = ['create-database-role', 'change-database-role', 'drop-database-role']
  async function databaseRoles(through: typeof withControllerKilled) {
    const of = { instanceId: one, role: 'walked "through"' }
    const seen = async () =>
      fixture.ask(
        primaryOf(await cluster()) as ClusterMember,
        `select rolcanlogin as login, rolpassword as verifier from pg_authid where rolname = 'walked "through"'`,
      )
    const passwordVerifier = scramVerifier('walked')
    await through('create-database-role', { ...of, login: true, passwordVerifier })
    expect(await seen()).toEqual([{ login: true, verifier: passwordVerifier }])
    await through('change-database-role', { ...of, login: false, passwordVerifier: null })
    expect(await seen()).toEqual([{ login: false, verifier: null }])
    await through('drop-database-role', of)
    expect(await seen()).toEqual([])
  }
  walk('database roles', { controller: roleKinds }, () => databaseRoles(withControllerKilled))
  walk('database roles, the agents killed', { agents: roleKinds }, () => databaseRoles(throughDeadAgents))

  const flashbackKinds: OperationKind[] = [
    'prepare-flashback',
    'preview-flashback',
    'flashback-table',
    'compare-flashback',
    'merge-flashback',
    'swap-flashback',
    'drop-flashback',
    'export-flashback',
    'flashback-dropped-table',
  ]

  async function flashbacks(who: keyof Walks, name: string) {
    const through = who === 'controller' ? withControllerKilled : throughDeadAgents
    const primary = primaryOf(await cluster()) as ClusterMember
    const ask = async (sql: string) => (await fixture.ask(primary, sql)) as Record<string, string>[]
    const of = { instanceId: primary.instanceId, database: 'postgres' }
    await gate.arm(false)
    await fixture.carryOut('change-settings', {
      instanceId: primary.instanceId,
      changes: ['polar_enable_flashback_log', 'polar_enable_fast_recovery_area'].map((setting) => ({
        name: setting,
        value: 'on',
      })),
    })
    await fixture.carryOut('restart-instance', { instanceId: primary.instanceId, mode: 'fast' })
    await ask(`create table ${name} (id int primary key, v text)`)
    await ask(`insert into ${name} select n, 'then' from generate_series(1, 100) n`)
    await waitUntil('the log has a window', async () => {
      await ask('checkpoint')
      const [log] = await ask('select state from polar_stat_flashback_log')
      return log?.state === 'on'
    })
    const [moment] = await ask('select pg_sleep(0.1), clock_timestamp()::text as at')
    await ask(`delete from ${name} where id <= 40`)
    const [row] = await ask(`select '${name}'::regclass::oid::int as oid`)
    const table = { table: Number(row?.oid), tableName: `public.${name}` }
    const at = String(moment?.at)
    const results = async () =>
      ask(`select relname from pg_class where relname ~ '^polar_flashback_${table.table}$'`)
    await through('prepare-flashback', of)
    await through('preview-flashback', { ...of, ...table, at })
    const { result } = await through('flashback-table', { ...of, ...table, at })
    expect(result).toMatchObject({ rows: 100 })
    expect(await results()).toHaveLength(1)
    const made = { ...of, result: result?.result, resultName: result?.resultName }
    const ofBoth = { ...made, tableName: table.tableName }
    const compared = await through('compare-flashback', ofBoth)
    expect(compared.result).toMatchObject({ removed: 40, added: 0, changed: 0 })
    const merged = await through('merge-flashback', {
      ...ofBoth,
      insertMissing: true,
      restoreChanged: false,
      deleteAdded: false,
      expected: { inserted: 40, restored: 0, deleted: 0 },
    })
    expect(merged.result).toMatchObject({ inserted: 40 })
    await ask(`delete from ${name}`)
    const swapped = await through('swap-flashback', { ...ofBoth, confirmName: primary.name })
    expect(await ask(`select count(*)::int as n from ${name}`)).toEqual([{ n: 100 }])
    const last = { ...made, result: swapped.result?.result }
    await through('export-flashback', last)
    await through('drop-flashback', last)
    expect(await results()).toEqual([])
    await ask(`drop table ${name}`)
    const [gone] = await ask(
      `select lsn::text from polar_flashback_dropped() where relation = ${table.table} and kind = 'dropped'`,
    )
    const back = await through('flashback-dropped-table', { ...of, ...table, lsn: gone?.lsn })
    expect(back.result).toMatchObject({ rows: 100 })
    await expectNothingLeft()
  }
  walk('flashbacks', { controller: flashbackKinds }, () => flashbacks('controller', 'first'))
  walk('flashbacks, the agents killed', { agents: flashbackKinds }, () => flashbacks('agents', 'second'))

  async function restores(who: keyof Walks, name: string, room: string) {
    const through = who === 'controller' ? withControllerKilled : throughDeadAgents
    const primary = primaryOf(await cluster()) as ClusterMember
    const ask = async (sql: string) => (await fixture.ask(primary, sql)) as Record<string, string>[]
    await backUp(primary, room)
    await ask(`create table ${name} (id int primary key)`)
    await ask(`insert into ${name} select generate_series(1, 100)`)
    const [moment] = await ask(
      `select pg_sleep(0.1), to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`,
    )
    await ask(`delete from ${name}`)
    await ask('select pg_switch_wal()')
    await copyWal(primary, room)
    const { result } = await through('restore-table', {
      instanceId: primary.instanceId,
      database: 'postgres',
      tableName: `public.${name}`,
      at: moment?.at,
      backupDirectory: `${room}/base`,
      walDirectory: `${room}/wal`,
    })
    expect(result).toMatchObject({ resultName: `public.polar_restored_${name}`, rows: 100 })
    expect(await ask(`select count(*)::int as n from polar_restored_${name}`)).toEqual([{ n: 100 }])
    await ask(`drop table ${name}, polar_restored_${name}`)
    await expectNothingLeft()
  }
  walk('restore-table', { controller: ['restore-table'] }, () =>
    withRoom((room) => restores('controller', 'third', room)),
  )
  walk('restore-table, the agents killed', { agents: ['restore-table'] }, () =>
    withRoom((room) => restores('agents', 'fourth', room)),
  )

  walk(
    'create-instance, promote-standby, remove-standby and delete-instance, the agents killed',
    { agents: ['create-instance', 'promote-standby', 'remove-standby', 'delete-instance'] },
    async () => {
      const { clusterId } = await cluster()
      const host = fixture.host(3).hostId
      await gate.arm(false)
      await fixture.carryOut('create-standby', { instanceId: four, name: 'one-4', clusterId }, host)
      await throughDeadAgents('remove-standby', { instanceId: four, confirmName: 'one-4' })
      await expectNothingLeft()
      const five = randomUUID()
      await gate.arm(false)
      await fixture.carryOut('create-standby', { instanceId: five, name: 'one-5', clusterId }, host)
      await throughDeadAgents('promote-standby', { instanceId: five, confirmName: 'one-5' })
      expect((await fixture.clusterOf(five)).primaryInstanceId).toBe(five)
      await throughDeadAgents('delete-instance', { instanceId: five, confirmName: 'one-5' })
      await expectNothingLeft()
      const six = randomUUID()
      await throughDeadAgents(
        'create-instance',
        {
          instanceId: six,
          name: 'six',
          settings: {},
          ownerPasswordVerifier: scramVerifier(fixture.password),
        },
        host,
      )
      await expectNothingLeft()
      await gate.arm(false)
      await fixture.carryOut('delete-instance', { instanceId: six, confirmName: 'six' })
    },
  )

  walk(
    'promote-standby, then delete-instance',
    { controller: ['promote-standby', 'delete-instance'] },
    async () => {
      await withControllerKilled('promote-standby', { instanceId: three, confirmName: 'one-3' })
      expect((await fixture.clusterOf(three)).primaryInstanceId).toBe(three)
      expect((await cluster()).synchronous?.instanceIds).toEqual([two])
      await expectNothingLeft()
      await withControllerKilled('delete-instance', { instanceId: three, confirmName: 'one-3' })
      await expectNothingLeft()
    },
  )

  walkAlways('remove-standby', { controller: ['remove-standby'] }, async () => {
    await withControllerKilled('remove-standby', { instanceId: two, confirmName: 'one-2' })
    await expectNothingLeft()
    const { roles } = await fixture.traces(one)
    const { members } = await cluster()
    expect(members.map((m) => m.name)).not.toContain('one-2')
    expect(roles).toEqual(members.map(replicationLoginOf).sort())
    for (const role of roles) expect(role).toMatch(/^floe_standby_one(_3)?_[0-9a-f]{16}$/)
  })

  // each walk makes sure that it walked what it promised
  test('every kind of operation has a walk, by the death of either', () => {
    expect(operationKinds.filter((kind) => !promised.controller.has(kind))).toEqual([])
    expect(operationKinds.filter((kind) => !promised.agents.has(kind))).toEqual([])
  })
})
