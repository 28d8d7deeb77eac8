import { createServer, type Server } from 'node:https'
import type { TLSSocket } from 'node:tls'
import {
  type AgentHandlers,
  contractVersion,
  createAgentRouter,
  type InstanceObserved,
  type NumberedCheckpoint,
  type NumberedStall,
  type Report,
  type TaskKey,
  type TaskStartInput,
  type TaskStatus,
} from '@floe/agent-contract'
import {
  buildAmong,
  fault,
  type HostFacts,
  type HostPackage,
  Lsn,
  noLimits,
  type ReplicationObserved,
  rightOf,
  type StandbySeen,
  type TornList,
  withLimits,
} from '@floe/domain'
import type { Sample } from '@floe/telemetry'
import type { TestAuthority } from '@floe/testkit'
import { createHTTPHandler } from '@trpc/server/adapters/standalone'
import type { z } from 'zod'

type StartInput = z.output<typeof TaskStartInput>
type Task = { input: StartInput; status: TaskStatus; endsAt: number }

export const facts = (): HostFacts => ({
  hostName: 'double',
  operatingSystem: 'Linux',
  kernel: '6',
  architecture: 'x64',
  cpus: 2,
  memoryBytes: 1e9,
  memoryAvailableBytes: 5e8,
  loadAverage1: 0.1,
  uptimeSeconds: 100,
  supervision: 'detached',
  instancePorts: { from: 20_000, to: 20_100, used: 0 },
  disks: [
    {
      mount: '/',
      device: '/dev/nvme0n1',
      fileSystem: 'xfs',
      options: 'rw',
      sizeBytes: 1e12,
      freeBytes: 5e11,
      nvme: true,
    },
  ],
})

/** What a primary without standbys says of replication. */
export const replication = (more: Partial<ReplicationObserved> = {}): ReplicationObserved => ({
  at: 1,
  endLsn: Lsn.parse('0/1'),
  replayedLsn: null,
  timeline: 1,
  replayPaused: false,
  replayDelayMs: null,
  standbys: [],
  slots: [],
  receiver: null,
  synchronousStandbyNames: '',
  synchronousCommit: 'on',
  fullPageWrites: true,
  waitingCommits: 0,
  ...more,
})

/** A standby as its primary sees it. */
export const standbySeen = (applicationName: string, syncState: string): StandbySeen => ({
  applicationName,
  pid: 1,
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

const VERIFIER = `SCRAM-SHA-256$4096:${'A'.repeat(24)}$${'A'.repeat(44)}:${'A'.repeat(44)}`

/** As the runner of agents has it. */
const beside = ({ kind }: StartInput['task']) =>
  ['preview-flashback', 'compare-flashback', 'export-flashback'].includes(kind)
const idOf = (key: TaskKey) => `${key.operationId}/${key.step}/${key.attempt}`

/**
 * An agent in the memory of the test, behind the real router and mutual TLS: tasks take `taskMs`, instances change state
 * as the tasks say, and everything it was asked is counted. It outlives the controllers of a test, as agents do.
 */
export class FakeAgent {
  readonly hostId: string
  readonly tasks = new Map<string, Task>()
  readonly instances = new Map<string, InstanceObserved>()
  readonly samples = new Map<string, Sample[]>()
  readonly checkpoints = new Map<string, NumberedCheckpoint[]>()
  readonly stalls = new Map<string, NumberedStall[]>()
  /** Calls of task.start by key, also those that started nothing. */
  readonly startCalls = new Map<string, number>()
  taskMs = 20
  /** Fault of the next tasks of these kinds. */
  readonly failing = new Map<string, { code: string; message: string }>()
  /** What is torn of an instance; of others there is nothing to list. */
  readonly tornLists = new Map<string, TornList>()
  /** What was brought to it, by digest. */
  readonly packages = new Map<string, Buffer>()
  /** While set, tasks do not end. */
  held = false
  /** Every answer takes this much longer. */
  delayMs = 0
  facts = facts()
  clockSkewMs = 0
  bootId = 'boot-1'
  url = ''
  /** Keys that were cancelled before they were started: such a start begins nothing any more. */
  readonly #refused = new Set<string>()
  #reportSeq = 1
  #server: Server | undefined
  #port = 0
  #identity: string | undefined

  constructor(hostId: string) {
    this.hostId = hostId
  }

  /** Listens, at the same port again after a close. */
  async listen(authority: TestAuthority): Promise<void> {
    this.#identity ??= await authority.host(this.hostId)
    const handler = createHTTPHandler({
      basePath: '/trpc/',
      router: createAgentRouter(this.#handlers()),
      createContext: ({ req }) => ({
        right: rightOf((req.socket as TLSSocket).getPeerCertificate().subjectaltname),
      }),
    })
    const tls = { cert: this.#identity, key: this.#identity, ca: authority.certificate }
    const server = createServer({ ...tls, requestCert: true, rejectUnauthorized: true }, handler)
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#port, '127.0.0.1', resolve)
    })
    this.#port = (server.address() as { port: number }).port
    this.url = `https://127.0.0.1:${this.#port}`
  }

  async close(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (!server) return
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }

  changed(): void {
    this.#reportSeq++
  }

  #handlers(): AgentHandlers {
    const slow = async <T>(answer: () => T): Promise<T> => {
      if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs))
      return answer()
    }
    const missing = async () => {
      throw fault('agent.not_in_double', 'the double does not do this')
    }
    return {
      hello: () =>
        slow(() => ({
          contractVersion,
          agentVersion: 'double',
          hostId: this.hostId as never,
          hostName: 'double',
          bootId: this.bootId,
          startedAt: 1,
          now: Date.now() + this.clockSkewMs,
          capabilities: ['telemetry.stream'],
        })),
      readReport: async (input) => {
        const end = Date.now() + input.waitMs
        while (
          input.after?.bootId === this.bootId &&
          input.after.seq >= this.#reportSeq &&
          Date.now() < end
        ) {
          this.#settle()
          await new Promise((resolve) => setTimeout(resolve, 10))
        }
        return slow(() => this.#report())
      },
      startTask: (input) => slow(() => this.#start(input)),
      checkTask: ({ key, afterLogSeq }) => slow(() => this.#check(key, afterLogSeq)),
      cancelTask: (key) =>
        slow(() => {
          const task = this.tasks.get(idOf(key))
          if (!task) this.#refused.add(idOf(key))
          if (task?.status.state === 'running')
            task.status = { ...task.status, state: 'cancelled', endedAt: Date.now() }
          return this.#check(key, 0)
        }),
      listSettings: missing,
      checkSettings: missing,
      listCommitModes: missing,
      listDatabaseRoles: missing,
      readProtection: missing,
      readFlashback: missing,
      readSharedServer: missing,
      listFlashbackTables: missing,
      readFlashbackActivity: missing,
      listFlashbackLost: missing,
      listFlashbackResults: missing,
      readFlashbackRows: missing,
      readFlashbackDownload: missing,
      listKeptAside: missing,
      readKeptAside: missing,
      readTelemetry: ({ instanceId, afterSeq, limit }) =>
        slow(() => {
          const all = this.samples.get(instanceId) ?? []
          return {
            samples: all.filter((s) => s.seq > afterSeq).slice(0, limit),
            oldestSeq: all[0]?.seq ?? null,
            newestSeq: all.at(-1)?.seq ?? null,
          }
        }),
      // biome-ignore lint/correctness/useYield: the controller never streams
      streamTelemetry: async function* () {
        throw fault('agent.not_in_double', 'the double does not do this')
      },
      requestCertificate: missing,
      installCertificate: missing,
      readCheckpoints: ({ instanceId, afterSeq, limit, afterStallSeq }) =>
        slow(() => ({
          checkpoints: (this.checkpoints.get(instanceId) ?? [])
            .filter((c) => c.seq > afterSeq)
            .slice(0, limit),
          running: null,
          stalls: (this.stalls.get(instanceId) ?? []).filter((s) => s.seq > (afterStallSeq ?? Infinity)),
          runningStall: null,
        })),
    }
  }

  #report(): Report {
    this.#settle()
    return {
      bootId: this.bootId,
      seq: this.#reportSeq,
      at: Date.now(),
      facts: this.facts,
      instances: [...this.instances.values()],
    }
  }

  #start(input: StartInput): TaskStatus {
    const id = idOf(input.key)
    this.startCalls.set(id, (this.startCalls.get(id) ?? 0) + 1)
    this.#settle()
    const known = this.tasks.get(id)
    if (known && JSON.stringify(known.input.task) !== JSON.stringify(input.task))
      throw fault('task.key_reused', 'a different task was started with this key')
    if (known || this.#refused.has(id)) return this.#check(input.key, 0)
    const busy = [...this.tasks.values()].find(
      (t) =>
        t.status.state === 'running' &&
        t.input.task.instanceId === input.task.instanceId &&
        !beside(t.input.task) &&
        !beside(input.task),
    )
    if (busy) throw fault('task.instance_busy', 'another task works on this instance')
    this.tasks.set(id, {
      input,
      endsAt: Date.now() + this.taskMs,
      status: {
        key: input.key,
        state: 'running',
        progress: 0.5,
        message: 'working',
        log: [{ seq: 1, at: Date.now(), text: `working on ${input.task.kind}` }],
        result: null,
        fault: null,
        startedAt: Date.now(),
        endedAt: null,
      },
    })
    return this.#check(input.key, 0)
  }

  #check(key: TaskKey, afterLogSeq: number): TaskStatus {
    this.#settle()
    const task = this.tasks.get(idOf(key))
    if (!task)
      return {
        key,
        state: this.#refused.has(idOf(key)) ? 'cancelled' : 'not-started',
        progress: null,
        message: null,
        log: [],
        result: null,
        fault: null,
        startedAt: null,
        endedAt: null,
      }
    return { ...task.status, log: task.status.log.filter((line) => line.seq > afterLogSeq) }
  }

  /** Ends the tasks whose time has come. */
  #settle(): void {
    if (this.held) return
    for (const task of this.tasks.values()) {
      if (task.status.state !== 'running' || Date.now() < task.endsAt) continue
      const why = this.failing.get(task.input.task.kind)
      const log = [...task.status.log, { seq: 2, at: Date.now(), text: why ? why.message : 'finished' }]
      task.status = why
        ? { ...task.status, state: 'failed', fault: why, log, endedAt: Date.now() }
        : {
            ...task.status,
            state: 'succeeded',
            result: this.#carryOut(task.input),
            log,
            progress: 1,
            endedAt: Date.now(),
          }
      this.changed()
    }
  }

  #carryOut({ task }: StartInput): Record<string, unknown> {
    switch (task.kind) {
      case 'create-instance':
        this.show(task.instanceId, task.name, 'stopped')
        return { port: 20_001, directory: `/i/${task.instanceId}` }
      case 'start-instance':
      case 'restart-instance': {
        const pid = 1_000 + this.tasks.size
        this.show(task.instanceId, undefined, 'running', pid)
        return { postmasterPid: pid, readyMs: 5 }
      }
      case 'separate-instance':
        this.show(task.instanceId, undefined, 'running', 1_000 + this.tasks.size)
        return { user: 'floe-double', restarted: true, stoppedMs: 5 }
      case 'upgrade-instance': {
        const pid = 1_000 + this.tasks.size
        this.show(task.instanceId, undefined, 'running', pid)
        return { former: 'release-former', postmasterPid: pid, downMs: 5 }
      }
      case 'adopt-instance':
        this.show(task.instanceId, task.name, 'running', 1_000 + this.tasks.size)
        return { postmasterPid: 1_000, port: task.port, directory: `/i/${task.instanceId}`, lost: [] }
      case 'stop-instance':
        this.show(task.instanceId, undefined, 'stopped')
        return { stoppedMs: 5 }
      case 'reload-instance':
        return { pendingRestart: [] }
      case 'delete-instance':
        this.instances.delete(task.instanceId)
        return { removed: true, keptDirectory: null }
      case 'change-settings':
        return {
          confirmed: task.changes.map((c) => ({
            name: c.name,
            oldValue: 'old',
            newValue: c.value,
            pendingRestart: false,
          })),
          managedBefore: {},
          managed: Object.fromEntries(task.changes.map((c) => [c.name, c.value ?? ''])),
        }
      case 'resolve-drift':
        return { confirmed: [], managed: {} }
      default:
        return this.#carryOutClusterTask(task)
    }
  }

  /** What members of a cluster are asked; the double only keeps their states. */
  #carryOutClusterTask(task: StartInput['task']): Record<string, unknown> {
    const lsn = '0/3000000'
    switch (task.kind) {
      case 'prepare-standby':
        if (!this.instances.has(task.instanceId)) this.show(task.instanceId, task.name, 'creating')
        return {
          port: 20_001,
          directory: '/i',
          engineVersion: '18.6',
          replicationVerifier: VERIFIER,
          replicationRole: `floe_standby_${'0'.repeat(16)}`,
        }
      case 'admit-standby':
        return {
          upstream: {
            host: '127.0.0.1',
            port: 20_001,
            slot: `floe_${task.standbyName}`,
            role: task.role ?? '',
            systemIdentifier: '1',
            engineVersion: '18.6',
            sizeBytes: 1,
          },
        }
      case 'dismiss-standby':
        return { droppedSlot: true }
      case 'clone-standby':
        return { bytes: 1, copyMs: 1, method: 'basebackup' }
      case 'forget-standby':
        return { forgotten: this.instances.delete(task.instanceId) }
      case 'keep-aside':
        return { ownBytes: 0, ownCommits: 0, keptAside: null, discarded: false }
      case 'drop-kept-aside':
        return { dropped: true }
      case 'rewind-instance':
        return { rewound: true, refused: null }
      case 'checkpoint-instance':
        return { checkpointMs: 1 }
      case 'demote-instance':
        this.show(task.instanceId, undefined, 'stopped')
        return { shutdownLsn: lsn, stoppedMs: 1 }
      case 'fence-instance':
        this.show(task.instanceId, undefined, 'stopped')
        return { endLsn: lsn, wasRunning: true }
      case 'restore-primary':
        this.show(task.instanceId, undefined, 'running', 4_000)
        return { postmasterPid: 4_000 }
      case 'follow-upstream':
        this.show(task.instanceId, undefined, 'running', 4_001)
        return { postmasterPid: 4_001, streamingMs: 1 }
      case 'isolate-standby':
        return { endLsn: lsn, replayedLsn: lsn, timeline: 1 }
      case 'repoint-standby':
        return { streaming: true }
      case 'promote-instance':
        this.show(task.instanceId, undefined, 'running', 4_002)
        return { timeline: 2, promoteMs: 1, endLsn: lsn }
      case 'set-synchronous':
        return { standbyNames: task.standbyNames }
      case 'prepare-page-repair':
        return { repairVerifier: VERIFIER, repairRole: `floe_repair_${'0'.repeat(16)}` }
      case 'admit-page-repair':
        return { dropped: 0 }
      case 'set-page-repair-sources':
        return { inForce: true }
      case 'list-torn':
        return {
          list: this.tornLists.get(task.instanceId) ?? null,
          why: 'there are no torn pages to be listed',
        }
      case 'read-copies':
        return { data: '', crc32: 0, damaged: [] }
      case 'write-copies':
        return { bytes: 0 }
      case 'restore-pages':
        return { redo: task.redo, blocks: task.blocks, warnings: [] }
      case 'drop-restored-pages':
        return {}
      case 'prepare-role':
        return { role: null, former: null, verifier: null }
      case 'admit-roles':
        return {}
      case 'replicate-as':
        return { streaming: true }
      case 'retire-roles':
        return { retired: [], kept: [] }
      case 'reindex-database':
        return { rebuilt: 0, bytesBefore: 0, bytesAfter: 0, skipped: [] }
      case 'create-database-role':
      case 'change-database-role':
      case 'drop-database-role':
        return {}
      case 'prepare-flashback':
        return { version: '1.1', schema: 'public' }
      case 'preview-flashback':
      case 'compare-flashback':
        return { rowsThen: 2, rowsNow: 1, same: 1, added: 0, removed: 1, changed: 0, keyColumns: ['id'] }
      case 'flashback-table':
      case 'flashback-dropped-table':
        return { result: 16_400, resultName: `public.polar_flashback_${task.table}`, rows: 2, bytes: 8_192 }
      case 'merge-flashback':
        return { inserted: 1, restored: 0, deleted: 0, conflicts: 0 }
      case 'swap-flashback':
        return { rowsBefore: 1, rowsNow: 2, result: task.result }
      case 'drop-flashback':
        return { dropped: true }
      case 'export-flashback':
        return { openUntil: Date.now() + 900_000 }
      case 'restore-table':
        return {
          resultName: 'public.polar_restored_account',
          rows: 2,
          bytes: 8_192,
          reachedAt: '2026-11-23T23:39:59.5Z',
          warnings: [],
        }
      case 'require-tls':
        return { changed: true, sessionsWithoutTls: 0 }
      case 'limit-instance': {
        const limits = withLimits(noLimits, task.changes)
        return {
          limits,
          observed: {
            driver: 'cgroup-v2',
            whyNot: null,
            ordered: limits,
            inForce: limits,
            gaps: [],
            exempt: [],
            devices: { data: 'vda', wal: 'vda' },
            memoryNearLimit: false,
            outOfMemoryKills: 0,
          },
        }
      }
      case 'set-stall-length':
        return { stallAfterMs: task.afterMs ?? 1_000 }
      case 'check-host':
        return {
          ...{ version: 1, host: 'double', kernel: '6', cpus: 2, memoryBytes: 2 ** 34, container: false },
          ...{ disks: [], lines: [] },
        }
      case 'receive-package': {
        const there = this.packages.get(task.digest) ?? Buffer.alloc(0)
        const bytes = Buffer.from(task.data, 'base64')
        const now = task.offset === there.length ? Buffer.concat([there, bytes]) : there
        this.packages.set(task.digest, now)
        return { receivedBytes: now.length }
      }
      case 'install-packages': {
        const installed = task.packages.map(({ name, version }) => ({ name, version, status: 'installed' }))
        const [{ architecture, distribution }] = task.packages as [HostPackage]
        const engineBuild = buildAmong(task.packages)
        this.facts = {
          ...this.facts,
          packages: { architecture, distribution, accepted: true, installed },
          ...(engineBuild === null ? {} : { engineBuild }),
        }
        this.changed()
        return { installed }
      }
      case 'set-commit-mode':
        return { commitMode: task.commitMode }
      case 'check-settings':
        return {
          checked: task.changes.map((c) => ({
            name: c.name,
            impact: 'restart',
            oldValue: 'old',
            oldNumber: null,
            newNumber: null,
          })),
          managed: {},
          pendingRestart: [],
        }
      case 'await-settings':
        return { asked: task.atMost }
      case 'confirm-settings':
        return {
          confirmed: task.changes.map((c) => ({ name: c.name, newValue: c.value, pendingRestart: false })),
          managed: Object.fromEntries(task.changes.map((c) => [c.name, c.value ?? ''])),
        }
      default:
        return {}
    }
  }

  /** Makes an instance be reported in a state. */
  show(
    instanceId: string,
    name: string | undefined,
    state: InstanceObserved['state'],
    postmasterPid: number | null = null,
  ): void {
    const before = this.instances.get(instanceId)
    this.instances.set(instanceId, {
      instanceId: instanceId as never,
      name: name ?? before?.name ?? 'unnamed',
      state,
      because: state === 'crashed' ? 'it was killed' : null,
      role: 'primary',
      engineVersion: '18.6',
      systemIdentifier: '1',
      port: 20_001,
      directory: `/i/${instanceId}`,
      connection: {
        host: '127.0.0.1',
        port: 20_001,
        socketDirectory: '/s',
        user: 'postgres',
        database: 'postgres',
      },
      postmasterPid,
      startedAt: Date.now(),
      dataChecksums: true,
      timeline: 1,
      pendingRestart: [],
      newestSeq: null,
      observedAt: Date.now(),
      // agents keep what they were told, whatever becomes of the engine
      ...(before?.primaryKnown ? { primaryKnown: before.primaryKnown } : {}),
    })
    this.changed()
  }
}
