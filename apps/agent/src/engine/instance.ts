import { join } from 'node:path'
import type { InstanceObserved } from '@floe/agent-contract'
import {
  type Fault,
  foreseeableLogin,
  type InstanceRole,
  type InstanceState,
  LOOPBACK,
  type MemberLogins,
  noLimits,
  STALL_AFTER_MS,
} from '@floe/domain'
import type { Log } from '@floe/host/log'
import { currentBootId } from '@floe/host/process'
import { directoryNumber } from '@floe/host/process-facts'
import type pg from 'pg'
import type { EngineUser } from '../host/engine-user'
import type { ChosenDriver } from '../host/limits/choose'
import type { ProcessesOfUsers, ProcessSeen, ProcessTree } from '../host/process-table'
import { type CommandResult, runCommand } from '../host/run-command'
import type { Supervision } from '../host/supervision'
import { isThere } from '../host/tree'
import type { AgentInstallation } from '../installation'
import type { Problems } from '../problems'
import { Sampler } from '../sampler/sampler'
import { ensureServerCertificate } from './access/server-certificate'
import { readFence } from './cluster/member-files'
import { readControlFile } from './directory/control-file'
import { ControlLook } from './directory/control-look'
import { type InstanceLayout, instanceLayout } from './directory/layout'
import { EngineLooks, nothingSaid } from './engine-looks'
import { InstanceLimiter } from './limits/limiter'
import { engineOf } from './process/build'
import { type EngineAddress, withEngine } from './process/connection'
import { freshLook } from './process/fresh-look'
import { type InstanceProcesses, sortProcesses } from './process/instance-processes'
import { InstanceSocket } from './process/instance-socket'
import {
  findPostmaster,
  type Postmaster,
  uidOf,
  unnamedPostmaster,
  waitUntilReaped,
} from './process/postmaster'
import { processFault } from './process/process-fault'
import { entriesSince, lastWords, recentComplaints, whyItEnded } from './process/server-log'
import { startProgress } from './process/start-progress'
import { decideState, walk } from './process/state'
import type { RegisteredInstance } from './registry/registered-instance'
import type { InstanceRegistry } from './registry/registry'
import { commandLineSettings } from './settings/command-line'
import { readManagedSettings } from './settings/managed-file'
import { WatchedFiles } from './settings/watched-files'
import type { Heartbeats } from './shared-server/heartbeats'

/** How long an instance counts as running while the agent connects again. */
const BROKEN_MS = 3_000

const WITHOUT_POSTMASTER = 'its postmaster has ended, processes of it still work'

/** Processes of an instance that rests are looked for this often; of one that has just lost its postmaster at every look. */
const RESTING_MS = 5_000

/** What is wrong with its processes is reported when it has lasted this long: an engine that ends removes its postmaster.pid first. */
const ASTRAY_MS = 2_000

/** What a standby said of its upstream counts for this long. */
const COMPLAINT_MS = 60_000

/** What every instance needs of the agent around it. */
export type InstanceSurroundings = {
  installation: AgentInstallation
  registry: InstanceRegistry
  supervision: Supervision
  limits: ChosenDriver
  /** Of instances that have none of their own. */
  user: EngineUser
  tree: ProcessTree
  processes: ProcessesOfUsers
  log: Log
  problems: Problems
  /** Called when something of it changed that a report contains. */
  onChange: () => void
}

/** All processes of an instance that there are, also of one that is not registered yet; at most `maxAgeMs` old. */
export function processesOf(
  registered: Pick<RegisteredInstance, 'instanceId' | 'user' | 'workedIn'>,
  around: Pick<InstanceSurroundings, 'installation' | 'supervision' | 'processes' | 'user'>,
  maxAgeMs = 0,
): InstanceProcesses {
  const { instancesDirectory } = around.installation
  const { instanceId, user: ownUser, workedIn } = registered
  const layout = instanceLayout(instancesDirectory, instanceId)
  const user = ownUser ?? around.user
  return sortProcesses(
    {
      layout,
      instancesDirectory,
      user,
      ownUser: ownUser !== undefined,
      workedIn: workedIn ?? null,
      worksIn: directoryNumber(layout.dataDirectory),
      supervised: (pid) => around.supervision.owns(pid, instanceId),
    },
    around.processes.of(uidOf(user), maxAgeMs),
  )
}

/** One instance: what was ordered, what is seen of it, and its telemetry. */
export class Instance {
  readonly instanceId: string
  readonly layout: InstanceLayout
  readonly sampler: Sampler
  readonly limiter: InstanceLimiter
  readonly files: WatchedFiles
  /** Set by the task that starts or stops it. */
  activity: 'starting' | 'stopping' | null = null
  readonly #around: InstanceSurroundings
  readonly #control: ControlLook
  readonly #engine: EngineLooks
  #postmaster: Postmaster | null = null
  /** What is wrong with its processes, and since when. */
  #astray: { fault: Fault; since: number } | null = null
  #state: InstanceState | null = null
  #because: string | null = null
  /** While it starts; null where its log says nothing of it. */
  #progress: string | null = null
  #faultSaid = 'null'
  #startedAt: number | null = null
  #orderedStartAt = 0
  #aliveAt = 0
  #lastPid: number | null = null
  readonly #freshLook = freshLook(() => this.#look())
  #listensOn = ['localhost']
  #listensOnSettled = false

  constructor(registered: RegisteredInstance, around: InstanceSurroundings) {
    this.#around = around
    this.instanceId = registered.instanceId
    this.layout = instanceLayout(around.installation.instancesDirectory, registered.instanceId)
    this.files = new WatchedFiles({
      instanceId: registered.instanceId,
      layout: this.layout,
      stateDirectory: around.installation.stateDirectory,
      isSettled: () => /^(running|stopped)$/.test(around.registry.find(this.instanceId)?.expected ?? ''),
      log: around.log,
      onChange: around.onChange,
    })
    this.#control = new ControlLook({
      read: () => readControlFile(this.registered.enginePrefix, this.layout.dataDirectory, this.user),
      runs: () => this.sampler.identity !== null,
      onChange: around.onChange,
    })
    const telemetry = join(around.installation.stateDirectory, 'telemetry', registered.instanceId)
    this.limiter = new InstanceLimiter({
      instanceId: registered.instanceId,
      dataDirectory: this.layout.dataDirectory,
      chosen: around.limits,
      tree: around.tree,
      uid: () => uidOf(this.user),
      ordered: () => around.registry.find(this.instanceId)?.limits ?? noLimits,
      processes: () => this.processes().all,
      killsFile: join(telemetry, 'memory-kills.json'),
      log: around.log,
      onChange: around.onChange,
    })
    this.sampler = new Sampler({
      name: registered.name,
      address: () => this.address,
      user: () => this.user,
      layout: this.layout,
      directory: telemetry,
      postmaster: () => this.#postmaster,
      tree: around.tree,
      limits: () => this.limiter.reading(),
      stallAfterMs: () => this.stallAfterMs,
      log: around.log,
      onHealth: () => {
        around.onChange()
        void this.look()
      },
      onStored: (what, error) => this.#stored(what, error),
    })
    this.#engine = new EngineLooks({
      sampler: this.sampler,
      postmasterPid: () => this.#postmaster?.pid ?? null,
      onChange: around.onChange,
    })
  }

  #stored(what: 'samples' | 'checkpoints' | 'stalls', error: unknown): void {
    const { problems, registry } = this.#around
    const key = `${what}-not-stored:${this.instanceId}`
    if (error === null) {
      problems.end(key)
      return
    }
    const name = registry.find(this.instanceId)?.name ?? this.instanceId
    problems.begin(
      key,
      {
        code: `telemetry.${what}_not_stored`,
        message: `could not store the ${what} of instance "${name}"`,
        detail: error instanceof Error ? error.message : String(error),
        hint: 'The newest are kept in memory until there is room; free space on the agent’s file system.',
      },
      this.instanceId,
    )
  }

  /** Of its dispatchers, and their relays. */
  get heartbeats(): Heartbeats {
    return this.#engine.heartbeats
  }

  /** From when on work without a commit is a stall. */
  get stallAfterMs(): number {
    const { registry, installation } = this.#around
    return registry.find(this.instanceId)?.stallAfterMs ?? installation.stallAfterMs ?? STALL_AFTER_MS
  }

  /** Sets that, for the next sample and every later agent; null: what the host says. */
  setStallLength(afterMs: number | null): void {
    this.#around.registry.update(this.instanceId, { stallAfterMs: afterMs ?? undefined })
    this.#around.onChange()
  }

  get registered(): RegisteredInstance {
    return this.#around.registry.get(this.instanceId)
  }

  get state(): InstanceState {
    return this.#state ?? 'unknown'
  }

  get because(): string | null {
    return this.#because
  }

  get postmaster(): Postmaster | null {
    return this.#postmaster
  }

  /** What is wrong with its processes where no living postmaster of it is named by its postmaster.pid; null as long as all is well. */
  get processFault(): Fault | null {
    const { fault, since } = this.#astray ?? { fault: null, since: 0 }
    return fault && performance.now() - since >= ASTRAY_MS ? fault : null
  }

  /** All processes of it that there are, by other witnesses than its postmaster.pid; at most `maxAgeMs` old. */
  processes(maxAgeMs = 0): InstanceProcesses {
    return processesOf(this.registered, this.#around, maxAgeMs)
  }

  /** Whether any process of its engine works now, with a postmaster or without. */
  works(): boolean {
    return findPostmaster(this.layout, this.user) !== null || this.processes().engine.length > 0
  }

  get address(): EngineAddress {
    const r = this.registered
    return {
      socketDirectory: this.#around.installation.socketDirectory,
      port: r.port,
      password: r.agentPassword,
      uid: this.user.uid,
    }
  }

  get enginePrefix(): string {
    return this.registered.enginePrefix
  }

  /** Who its processes run as and its files belong to. */
  get user(): EngineUser {
    return this.registered.user ?? this.#around.user
  }

  /** How it presents itself to the member that it follows. */
  get asking() {
    return {
      name: this.registered.name,
      passFile: this.layout.passFile,
      noRootFile: this.layout.noRootFile,
    }
  }

  /** Runs something over a connection of its own, as the agent's role. */
  connect<T>(run: (client: pg.Client) => Promise<T>, statementMs?: number): Promise<T> {
    return withEngine(this.address, run, statementMs)
  }

  /** Runs something over a new connection without settings of its own: it sees what every new connection sees. */
  connectPlainly<T>(run: (client: pg.Client) => Promise<T>): Promise<T> {
    return withEngine(this.address, run, 10_000, true)
  }

  /** Sees to its certificate; an engine that runs, started by an earlier version, takes it at once. */
  async ensureServerCertificate(): Promise<void> {
    if (!isThere(this.layout.dataDirectory)) return
    const changed = await ensureServerCertificate(this.layout, this.registered.name, this.user)
    if (changed && this.#postmaster) process.kill(this.#postmaster.pid, 'SIGHUP')
  }

  /** Starts the engine process; whether it gets ready is for the caller to watch. */
  async launch(): Promise<void> {
    const { installation, supervision } = this.#around
    const r = this.registered
    this.#orderedStartAt = Date.now()
    this.#listensOnSettled = false
    // without one, or with the one it had, it starts as well
    await this.ensureServerCertificate().catch((error) =>
      this.#around.log.warn('certificate.not_made', { instanceId: r.instanceId, reason: String(error) }),
    )
    const sockets = new InstanceSocket(installation.socketDirectory, r)
    await sockets.prepare(this.user)
    const settings = commandLineSettings(r, sockets.directory, this.layout.logDirectory)
    const entrances = await this.limiter.beforeStart()
    await supervision.start({
      instanceId: r.instanceId,
      title: r.name,
      file: join(r.enginePrefix, 'bin', 'postgres'),
      args: [
        '-D',
        this.layout.dataDirectory,
        ...Object.entries(settings).flatMap(([n, v]) => ['-c', `${n}=${v}`]),
      ],
      directory: this.layout.directory,
      outputFile: this.layout.startLog,
      user: this.user,
      writableDirectories: [this.layout.directory, sockets.directory],
      limits: r.limits ?? noLimits,
      entrances,
    })
  }

  /**
   * Runs its engine, with further settings, until it ends without a stop: for a start that is none. No client reaches it by the
   * network, and what it says is the answer.
   */
  async runToEnd(
    settings: Record<string, string>,
    { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
  ): Promise<CommandResult> {
    const { installation } = this.#around
    const r = this.registered
    const sockets = new InstanceSocket(installation.socketDirectory, r)
    await sockets.prepare(this.user)
    await waitUntilReaped(this.layout, signal)
    const all = {
      ...commandLineSettings(r, sockets.directory, this.layout.logDirectory),
      listen_addresses: '',
      logging_collector: 'off',
      log_destination: 'stderr',
      log_min_messages: 'log',
      ...settings,
    }
    const words = Object.entries(all).flatMap(([n, v]) => ['-c', `${n}=${v}`])
    return runCommand(join(r.enginePrefix, 'bin', 'postgres'), ['-D', this.layout.dataDirectory, ...words], {
      user: this.user,
      timeoutMs,
      signal,
    })
  }

  /** Removes its socket, and what leads there: it is gone for good. */
  removeSocket(): Promise<void> {
    return new InstanceSocket(this.#around.installation.socketDirectory, this.registered).remove(this.user)
  }

  /** Where other members reach it. */
  async reachedAt(): Promise<{ host: string; port: number }> {
    const { host, port } = (await this.observed()).connection
    return { host, port }
  }

  /** The engine's reasons since the last ordered start. */
  lastWords(): string[] {
    return lastWords(this.layout, this.#orderedStartAt)
  }

  /** Errors of its own processes since the last ordered start, oldest first; a standby says there why it cannot follow. */
  recentComplaints(): string[] {
    return recentComplaints(this.layout, this.#orderedStartAt)
  }

  /** What a standby that receives no WAL complained of last. An engine that cannot follow says so every few seconds. */
  #whyNotStreaming(): string | null {
    const live = this.sampler.identity
    if (!live?.inRecovery || !live.replication || live.replication.receiver?.status === 'streaming')
      return null
    return (
      recentComplaints(this.layout, Math.max(this.#orderedStartAt, Date.now() - COMPLAINT_MS))
        .at(-1)
        ?.slice(0, 1_000) ?? null
    )
  }

  /** Looks at processes and answers and moves the state: a look that began before the call does not count. */
  look(): Promise<void> {
    return this.#freshLook()
  }

  async #look(): Promise<void> {
    const { registry, log } = this.#around
    const registered = registry.find(this.instanceId)
    if (!registered) return
    this.files.look()
    const before = this.#postmaster
    this.#postmaster = findPostmaster(this.layout, this.user)
    const left = this.#postmaster ? this.#named() : this.#unnamed(before)
    const alive = this.#postmaster !== null
    this.limiter.look(this.#postmaster, !alive && left.length === 0 && this.activity === null)
    if (before && !alive) this.sampler.ended()
    if (this.#postmaster) {
      this.#aliveAt = Date.now()
      this.#lastPid = this.#postmaster.pid
      this.sampler.wake()
    }
    const gone = !alive && this.#state !== 'stopped' && this.#state !== 'crashed'
    if (gone && isThere(this.layout.dataDirectory)) await this.#control.readAtEnd()
    const shutDownCleanly = /^shut down/.test(this.#control.control?.clusterState ?? '')
    const expected = registry.find(this.instanceId)?.expected ?? 'deleting'
    const next =
      !alive &&
      left.length === 0 &&
      this.#state === 'crashed' &&
      this.activity === null &&
      expected === 'running'
        ? 'crashed'
        : decideState({
            expected,
            activity: this.activity,
            alive,
            working: left.length > 0,
            status: this.#postmaster?.status ?? null,
            answersSql: this.#answers(before),
            wasStarting: this.#state === 'starting',
            shutDownCleanly,
            machineRestarted: this.#machineRestarted(),
          })
    this.#lookAtStart(next === 'starting')
    if (next === this.#state) return this.#tellFault()
    for (const step of walk(this.#state, next)) {
      if (step.state === 'stopping' && left.length > 0) step.because = WITHOUT_POSTMASTER
      log.info('instance.moved', {
        instanceId: this.instanceId,
        name: registered.name,
        from: this.#state,
        to: step.state,
        because: step.because,
      })
      this.#state = step.state
      this.#because = step.because
      this.#around.onChange()
    }
    if (next === 'crashed')
      this.#because =
        shutDownCleanly && this.#machineRestarted()
          ? 'it was shut down with its machine, which was restarted'
          : whyItEnded(this.layout, {
              orderedStartAt: this.#orderedStartAt,
              aliveAt: this.#aliveAt,
              pid: before?.pid ?? this.#lastPid,
            })
    if (next === 'stopped' && expected === 'running' && this.activity === null) {
      registry.update(this.instanceId, { expected: 'stopped' })
      this.#because = 'it was shut down outside Floe'
    }
    if (next === 'running') this.#control.forget()
    this.#tellFault()
  }

  /** Its postmaster.pid names a postmaster: remembers where that works, should the directory get another name. */
  #named(): ProcessSeen[] {
    this.#astray = null
    const { registry } = this.#around
    const workedIn = directoryNumber(this.layout.dataDirectory)
    const workedInBoot = currentBootId()
    const known = registry.find(this.instanceId)
    if (workedIn !== null && known?.workedIn !== workedIn) registry.update(this.instanceId, { workedIn })
    if (known?.workedInBoot !== workedInBoot) registry.update(this.instanceId, { workedInBoot })
    return []
  }

  /** Whether its postmaster was last seen before the machine was started; false where that is not known. */
  #machineRestarted(): boolean {
    const seenIn = this.#around.registry.find(this.instanceId)?.workedInBoot
    return seenIn !== undefined && seenIn !== currentBootId()
  }

  /** No postmaster is named: one may run all the same. Answers what works of it without any. */
  #unnamed(before: Postmaster | null): ProcessSeen[] {
    const resting = before === null && this.#astray === null && this.activity === null
    const settled = this.#state === 'stopped' || this.#state === 'crashed'
    const { engine, postmaster } = this.processes(resting && settled ? RESTING_MS : 0)
    if (postmaster) {
      const found = unnamedPostmaster(postmaster)
      // the last word of the file that is gone
      const same = before?.pid === found.pid && before.startTicks === found.startTicks
      this.#postmaster = same ? before : found
    }
    const fault = processFault({ ...this.registered, layout: this.layout }, engine, postmaster)
    this.#astray = fault && { fault, since: this.#astray?.since ?? performance.now() }
    return postmaster ? [] : engine
  }

  /** How far its start is, as its log has it. */
  #lookAtStart(starts: boolean): void {
    const before = this.#progress
    this.#progress = starts ? startProgress(entriesSince(this.layout, this.#orderedStartAt)) : null
    if (this.#progress !== before) this.#around.onChange()
  }

  /** A report contains it when it has lasted, and what it is now. */
  #tellFault(): void {
    const said = JSON.stringify(this.processFault)
    if (said === this.#faultSaid) return
    this.#faultSaid = said
    const fault = this.processFault
    if (fault) this.#around.log.warn('instance.processes_astray', { instanceId: this.instanceId, fault })
    this.#around.onChange()
  }

  /** Asks its engine for what the report says of it, where that is due. */
  lookAtEngine(): Promise<void> {
    return this.#engine.look()
  }

  /** How clients on other hosts come in, asked now. */
  lookAtRemoteAccess(): Promise<void> {
    return this.#engine.lookAt('remoteAccess')
  }

  /** The roles that it logs in with at other members. */
  get logins(): MemberLogins {
    const r = this.registered
    const { followsAs, replicationRole, replicationPassword, repairRole, repairPassword } = r
    return {
      replication:
        followsAs ??
        replicationRole ??
        (replicationPassword === undefined ? null : foreseeableLogin('standby', r.name)),
      repair: repairRole ?? (repairPassword === undefined ? null : foreseeableLogin('repair', r.name)),
    }
  }

  /** A connection that has just broken says nothing yet, unless the process behind it is another one. */
  #answers(before: Postmaster | null): boolean {
    const { health, healthAgeMs } = this.sampler
    if (health !== 'connecting') return health !== 'refused'
    const same = before?.pid === this.#postmaster?.pid && before?.startTicks === this.#postmaster?.startTicks
    return this.#state === 'running' && same && healthAgeMs < BROKEN_MS
  }

  /** As the report has it. */
  async observed(): Promise<InstanceObserved> {
    const r = this.registered
    const { installation } = this.#around
    const live = this.sampler.identity
    // who sees a new instance running also reads how clients come in
    if (live && this.#engine.said.remoteAccess === null) await this.lookAtRemoteAccess().catch(() => {})
    if (!live && isThere(this.layout.dataDirectory) && this.state !== 'creating')
      await this.#control.lookForReport()
    const { control } = this.#control
    const role: InstanceRole | null = live ? (live.inRecovery ? 'standby' : 'primary') : null
    return {
      instanceId: r.instanceId,
      name: r.name,
      state: this.state,
      because: this.processFault?.message ?? this.#whyInDoubt() ?? this.#progress ?? this.#because,
      role,
      engineVersion: live?.version ?? null,
      systemIdentifier: live?.systemIdentifier ?? control?.systemIdentifier ?? null,
      port: r.port,
      directory: this.layout.directory,
      connection: {
        host: this.#reachedAt(),
        port: r.port,
        socketDirectory: installation.socketDirectory,
        user: 'postgres',
        database: 'postgres',
      },
      postmasterPid: this.#postmaster?.pid ?? null,
      startedAt: live?.startedAt ?? null,
      dataChecksums: live?.dataChecksums ?? control?.dataChecksums ?? null,
      timeline: live?.replication?.timeline ?? live?.timeline ?? control?.timeline ?? null,
      pendingRestart: live?.pendingRestart ?? [],
      newestSeq: this.sampler.ring.newestSeq,
      observedAt: Date.now(),
      replication: live?.replication ?? null,
      fenced: readFence(this.layout),
      whyNotStreaming: this.#whyNotStreaming(),
      processFault: this.processFault,
      settingDrift: [...this.files.drift],
      user: { name: this.user.name, own: r.user !== undefined, separable: this.user.uid !== null },
      logins: this.logins,
      ...(this.#postmaster ? this.#engine.said : nothingSaid),
      primaryKnown: r.primaryKnown ?? null,
      standbySignal: isThere(this.layout.standbySignal),
      limits: this.limiter.observed(),
      stallAfterMs: this.stallAfterMs,
      engine: engineOf(r.enginePrefix, installation.enginePrefix, this.#postmaster),
    }
  }

  /** Files that cannot be read, unless it is down: why it is says more. */
  #whyInDoubt(): string | null {
    return this.state === 'crashed' || this.files.unreadable === null
      ? null
      : `its settings cannot be read: ${this.files.unreadable}`
  }

  /** The host's own address where the engine listens on it, else the loopback. What it listens on is settled at its start. */
  #reachedAt(): string {
    if (!this.#listensOnSettled)
      try {
        const listens = readManagedSettings(this.layout.managedFile).get('listen_addresses') ?? 'localhost'
        this.#listensOn = listens.split(',').map((address) => address.trim())
        this.#listensOnSettled = true
      } catch {
        // a superuser of the instance put something else there: that keeps no other instance from being reported
      }
    const { hostAddress } = this.#around.installation
    return ['*', '0.0.0.0', '::', hostAddress].some((a) => this.#listensOn.includes(a))
      ? hostAddress
      : LOOPBACK
  }

  close(): void {
    this.sampler.stop()
    for (const what of ['samples', 'checkpoints'] as const) this.#stored(what, null)
  }
}
