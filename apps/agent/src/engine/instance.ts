import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { InstanceObserved, SettingDrift } from '@floe/agent-contract'
import { type InstanceRole, type InstanceState, LOOPBACK, type Protection } from '@floe/domain'
import type pg from 'pg'
import type { EngineUser } from '../host/engine-user'
import type { ProcessTree } from '../host/process-table'
import type { Supervision } from '../host/supervision'
import type { AgentInstallation } from '../installation'
import type { Log } from '../log'
import type { Problems } from '../problems'
import { Sampler } from '../sampler/sampler'
import { readFence } from './cluster-files'
import { readManagedSettings } from './configuration-file'
import { type EngineAddress, withEngine } from './connection'
import { type ControlFile, readControlFile } from './control-file'
import { KnownSettings } from './known-settings'
import { type InstanceLayout, instanceLayout } from './layout'
import { findPostmaster, type Postmaster } from './postmaster'
import { newsOf, readProtection, recoveryWithStart } from './protection'
import type { InstanceRegistry, RegisteredInstance } from './registry'
import { commandLineSettings } from './reserved-settings'
import { ensureServerCertificate } from './server-certificate'
import { lastWords, recentComplaints } from './server-log'
import { driftOf, isSealed, pathOf, readFileTexts, settingsFiles } from './settings-files'
import { decideState, walk } from './state'

/** How long an instance counts as running while the agent connects again. */
const BROKEN_MS = 3_000

/** An edit of a file of settings shows within this time; a look is three calls of stat. */
const FILES_MS = 2_000

/** A change of protection shows within this time; a look is two short questions. */
const PROTECTION_MS = 1_000

function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat ? `${stat.ino}:${stat.size}:${stat.mtimeMs}` : '-'
}

/** What every instance needs of the agent around it. */
export type InstanceSurroundings = {
  installation: AgentInstallation
  registry: InstanceRegistry
  supervision: Supervision
  user: EngineUser
  tree: ProcessTree
  log: Log
  problems: Problems
  /** Called when something of it changed that a report tells. */
  onChange: () => void
}

/** One instance: what was ordered, what is seen of it, and its telemetry. */
export class Instance {
  readonly instanceId: string
  readonly layout: InstanceLayout
  readonly sampler: Sampler
  readonly known: KnownSettings
  /** A task writes its files of settings: what they hold meanwhile is no drift. */
  changingSettings = false
  /** Set by the task that starts or stops it. */
  activity: 'starting' | 'stopping' | null = null
  readonly #around: InstanceSurroundings
  #postmaster: Postmaster | null = null
  #state: InstanceState | null = null
  #because: string | null = null
  #control: ControlFile | null = null
  #startedAt: number | null = null
  #orderedStartAt = 0
  #looking: Promise<void> | null = null
  #listensOn: string[] | null = null
  #drift: SettingDrift[] = []
  #protection: Protection | null = null
  #protectionSeenAt = Number.NEGATIVE_INFINITY
  #filesSeen = ''
  #filesSeenAt = Number.NEGATIVE_INFINITY

  constructor(registered: RegisteredInstance, around: InstanceSurroundings) {
    this.#around = around
    this.instanceId = registered.instanceId
    this.layout = instanceLayout(around.installation.instancesDirectory, registered.instanceId)
    this.known = new KnownSettings(around.installation.stateDirectory, registered.instanceId)
    this.sampler = new Sampler({
      name: registered.name,
      address: () => this.address,
      layout: this.layout,
      directory: join(around.installation.stateDirectory, 'telemetry', registered.instanceId),
      postmaster: () => this.#postmaster,
      tree: around.tree,
      log: around.log,
      onHealth: () => {
        around.onChange()
        void this.look()
      },
      onStored: (what, error) => this.#stored(what, error),
    })
  }

  #stored(what: 'samples' | 'checkpoints', error: unknown): void {
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

  get address(): EngineAddress {
    const r = this.registered
    return {
      socketDirectory: this.#around.installation.socketDirectory,
      port: r.port,
      password: r.agentPassword,
    }
  }

  get enginePrefix(): string {
    return this.registered.enginePrefix
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
    if (!existsSync(this.layout.dataDirectory)) return
    const changed = await ensureServerCertificate(this.layout, this.registered.name, this.#around.user)
    if (changed && this.#postmaster) process.kill(this.#postmaster.pid, 'SIGHUP')
  }

  /** Starts the engine process; whether it gets ready is for the caller to watch. */
  async launch(): Promise<void> {
    const { installation, supervision, user } = this.#around
    const r = this.registered
    this.#orderedStartAt = Date.now()
    this.#listensOn = null
    // without one, or with the one it had, it starts as well
    await this.ensureServerCertificate().catch((error) =>
      this.#around.log.warn('certificate.not_made', { instanceId: r.instanceId, reason: String(error) }),
    )
    const settings = commandLineSettings(r, installation.socketDirectory, this.layout.logDirectory)
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
      user,
    })
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

  /** Looks at processes and answers and moves the state; looks do not overlap. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    const { registry, log, user } = this.#around
    const registered = registry.find(this.instanceId)
    if (!registered) return
    this.lookAtFiles()
    const before = this.#postmaster
    this.#postmaster = findPostmaster(this.layout)
    const alive = this.#postmaster !== null
    if (before && !alive) this.sampler.ended()
    if (alive) this.sampler.wake()
    const gone = !alive && this.#state !== 'stopped' && this.#state !== 'crashed'
    if (gone && existsSync(this.layout.dataDirectory))
      this.#control = await readControlFile(registered.enginePrefix, this.layout.dataDirectory, user).catch(
        () => null,
      )
    const shutDownCleanly = /^shut down/.test(this.#control?.clusterState ?? '')
    const expected = registry.find(this.instanceId)?.expected ?? 'deleting'
    const next =
      !alive && this.#state === 'crashed' && this.activity === null && expected === 'running'
        ? 'crashed'
        : decideState({
            expected,
            activity: this.activity,
            alive,
            status: this.#postmaster?.status ?? null,
            answersSql: this.#answers(before),
            wasStarting: this.#state === 'starting',
            shutDownCleanly,
          })
    if (next === this.#state) return
    for (const step of walk(this.#state, next)) {
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
    if (next === 'crashed') this.#because = this.lastWords().join('\n') || this.#because
    if (next === 'stopped' && expected === 'running' && this.activity === null) {
      registry.update(this.instanceId, { expected: 'stopped' })
      this.#because = 'it was shut down outside Floe'
    }
    if (next === 'running') this.#control = null
  }

  /** Asks what protects it against torn pages, at most every PROTECTION_MS and over the sampler's connection. */
  async lookAtProtection(): Promise<void> {
    const now = performance.now()
    if (!this.sampler.identity) this.#protection = null
    else if (now - this.#protectionSeenAt >= PROTECTION_MS) {
      this.#protectionSeenAt = now
      const before = newsOf(this.#protection)
      // an answer that does not come leaves the last one; whether the instance answers is the sampler's to say
      const answer = await readProtection((sql) => this.sampler.ask(sql)).catch(() => this.#protection)
      const seen = answer && {
        ...answer,
        recovery: recoveryWithStart(answer.recovery, this.sampler.crashStart),
      }
      this.#protection = seen
      if (newsOf(seen) !== before) this.#around.onChange()
    }
  }

  /** What files set otherwise than Floe left them, as of the last look. */
  get drift(): readonly SettingDrift[] {
    return this.#drift
  }

  /** Looks at the files of settings when one of them was written; at most every `everyMs`. */
  lookAtFiles(everyMs = FILES_MS): void {
    const now = performance.now()
    if (now - this.#filesSeenAt < everyMs || this.changingSettings) return
    this.#filesSeenAt = now
    const { registry, log } = this.#around
    const expected = registry.find(this.instanceId)?.expected
    if (expected !== 'running' && expected !== 'stopped') return
    try {
      const seen = settingsFiles.map((file) => stampOf(pathOf(this.layout, file))).join(' ')
      if (seen === this.#filesSeen) return
      const texts = readFileTexts(this.layout)
      const { accepted } = this.known
      // what Floe itself wrote is accepted by that
      if (!accepted) this.known.accept(texts)
      else if (isSealed(texts['floe.conf']))
        this.known.accept({ ...accepted, 'floe.conf': texts['floe.conf'] })
      const drift = driftOf(this.known.accepted ?? texts, texts)
      this.#filesSeen = seen
      if (JSON.stringify(drift) === JSON.stringify(this.#drift)) return
      this.#drift = drift
      log.info('settings.drift', { instanceId: this.instanceId, names: drift.map((d) => d.name) })
      this.#around.onChange()
    } catch (error) {
      // on a full disk, or with something else in a file's place: the next look tells
      log.warn('settings.not_read', { instanceId: this.instanceId, reason: String(error) })
    }
  }

  /** Notes that everything in the files is as Floe wants it, and that the engine is up with it where `good`. */
  acceptFiles(good: boolean): void {
    const texts = readFileTexts(this.layout)
    this.known.accept(texts)
    if (good) this.known.proveGood(texts)
    this.#filesSeen = ''
    this.lookAtFiles(0)
  }

  /** A connection that has just broken says nothing yet, unless the process behind it is another one. */
  #answers(before: Postmaster | null): boolean {
    const { health, healthAgeMs } = this.sampler
    if (health !== 'connecting') return health !== 'refused'
    const same = before?.pid === this.#postmaster?.pid && before?.startTicks === this.#postmaster?.startTicks
    return this.#state === 'running' && same && healthAgeMs < BROKEN_MS
  }

  /** As the report tells it. */
  async observed(): Promise<InstanceObserved> {
    const r = this.registered
    const { installation } = this.#around
    const live = this.sampler.identity
    if (!live && this.#control === null && existsSync(this.layout.dataDirectory) && this.state !== 'creating')
      this.#control = await readControlFile(
        r.enginePrefix,
        this.layout.dataDirectory,
        this.#around.user,
      ).catch(() => null)
    const role: InstanceRole | null = live ? (live.inRecovery ? 'standby' : 'primary') : null
    return {
      instanceId: r.instanceId,
      name: r.name,
      state: this.state,
      because: this.#because,
      role,
      engineVersion: live?.version ?? null,
      systemIdentifier: live?.systemIdentifier ?? this.#control?.systemIdentifier ?? null,
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
      dataChecksums: live?.dataChecksums ?? this.#control?.dataChecksums ?? null,
      timeline: live?.replication?.timeline ?? live?.timeline ?? this.#control?.timeline ?? null,
      pendingRestart: live?.pendingRestart ?? [],
      newestSeq: this.sampler.ring.newestSeq,
      observedAt: Date.now(),
      replication: live?.replication ?? null,
      fenced: readFence(this.layout),
      settingDrift: this.#drift,
      protection: this.#postmaster ? this.#protection : null,
    }
  }

  /** The host's own address where the engine listens on it, else the loopback. What it listens on is settled at its start. */
  #reachedAt(): string {
    if (this.#listensOn === null) {
      const listens = readManagedSettings(this.layout.managedFile).get('listen_addresses') ?? 'localhost'
      this.#listensOn = listens.split(',').map((address) => address.trim())
    }
    const { hostAddress } = this.#around.installation
    return ['*', '0.0.0.0', '::', hostAddress].some((a) => this.#listensOn?.includes(a))
      ? hostAddress
      : LOOPBACK
  }

  close(): void {
    this.sampler.stop()
    for (const what of ['samples', 'checkpoints'] as const) this.#stored(what, null)
  }
}
