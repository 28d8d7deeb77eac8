import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import type { CheckpointRead } from '@floe/agent-contract'
import { parseTimelineHistory, ReplicationObserved, type TimelineEnd } from '@floe/domain'
import type { Log } from '@floe/host/log'
import { listenFor } from '@floe/host/wait'
import { SAMPLE_INTERVAL_MS, type Sample, type StallRecord } from '@floe/telemetry'
import type pg from 'pg'
import type { z } from 'zod'
import type { InstanceLayout } from '../engine/directory/layout'
import {
  CANNOT_CONNECT_NOW,
  connectEngine,
  type EngineAddress,
  sqlState,
  streamOf,
} from '../engine/process/connection'
import type { Postmaster } from '../engine/process/postmaster'
import pendingRestartSql from '../engine/sql/pending-restart.sql'
import type { EngineUser } from '../host/engine-user'
import type { ProcessTree } from '../host/process-table'
import { CheckpointFollower, type CrashStart } from './checkpoint-follower'
import { CheckpointStore } from './checkpoint-store'
import { HungSleep, lookAtSleep } from './checkpointer-state'
import { addLimits, busyOfDevices, type LimitReading, limitedDevices } from './limit-reading'
import { readProcessTotals } from './process-accounting'
import { decodeReading, encodeReading, type Reading, readingFromRow, valuesBetween } from './reading'
import { ReplayDelay } from './replay-delay'
import { SampleRing } from './ring'
import { CheckpointProgress } from './running-checkpoint'
import { SessionWaits } from './session-waits'
import { SlowGauge } from './slow-gauge'
import columnsSql from './sql/columns.sql'
import databaseSizeSql from './sql/database-size.sql'
import identitySql from './sql/identity.sql'
import walSizeSql from './sql/wal-size.sql'
import { StallDetector, stuckFromRow } from './stall-detector'
import { StallStore } from './stall-store'
import { countAtOnce, decidingViews, tickStatement, type ViewColumns } from './statement'

/** The history of a timeline, which never changes. */
type KnownHistory = { timeline: number; ancestors: TimelineEnd[] }

/** The first timeline has none; of another its history file has it, where it is there. */
function historyOf(
  { timeline, history }: Record<string, unknown>,
  known: KnownHistory | null,
): KnownHistory | null {
  if (typeof timeline !== 'number') return null
  if (timeline === known?.timeline) return known
  if (timeline === 1) return { timeline, ancestors: [] }
  const ancestors =
    typeof history === 'string' ? parseTimelineHistory(Buffer.from(history, 'base64').toString()) : null
  return ancestors && { timeline, ancestors }
}

/** The statement ends before the next tick is due. */
const STATEMENT_MS = 700
/** The first of a session costs ten times as much, which must not make it the last where processors are short. */
const FIRST_STATEMENT_MS = 5_000
/** A connection that says nothing for this long is given up. */
const SILENCE_MS = 5_000
/** Longest hole that the first sample after a restart of the agent may cover. */
const BRIDGE_MS = 60_000

/** A session that leaves no trace of its own in logs and plans. */
const sessionSettings = {
  lock_timeout: String(STATEMENT_MS),
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  plan_cache_mode: 'force_generic_plan',
  log_statement: 'none',
  log_duration: 'off',
  log_min_duration_statement: '-1',
  log_min_duration_sample: '-1',
  log_min_error_statement: 'panic',
  'pg_stat_statements.track': 'none',
  'auto_explain.log_min_duration': '-1',
}

/** `busy`: it refuses this connection for another reason than not being open, so it does answer. */
export type SamplerHealth = 'connecting' | 'connected' | 'refused' | 'busy'

export type LiveIdentity = {
  version: string
  systemIdentifier: string
  timeline: number
  dataChecksums: boolean
  startedAt: number
  inRecovery: boolean
  pendingRestart: string[]
  /** As of the last tick; null where this engine reports it otherwise than expected. */
  replication: ReplicationObserved | null
}

export type SamplerOptions = {
  name: string
  address: () => EngineAddress
  layout: InstanceLayout
  /** Whose its files are. */
  user: () => EngineUser
  /** Where samples and checkpoints are kept. */
  directory: string
  postmaster: () => Postmaster | null
  tree: ProcessTree
  limits: () => LimitReading | null
  /** How long there is work without a commit before that is a stall, ms. */
  stallAfterMs: () => number
  log: Log
  onHealth: () => void
  /** Called with the error when samples or checkpoints cannot be stored, and with null when they are again. */
  onStored: (what: 'samples' | 'checkpoints' | 'stalls', error: unknown) => void
}

type Live = {
  client: pg.Client
  statement: string
  identity: LiveIdentity
  configurationLoaded: number | null
  /** Of the timeline of the last tick; null where it has to be read. */
  history: KnownHistory | null
}

/** What the last of the statements of a question answered; of several the driver returns a list. */
function rowsOf(answer: pg.QueryResult | pg.QueryResult[]): Record<string, unknown>[] {
  const last = Array.isArray(answer) ? answer.at(-1) : answer
  return last?.rows ?? []
}

/** A question and its answer; a connection that stays silent is given up. */
async function rowsInTime(client: pg.Client, query: pg.QueryConfig): Promise<Record<string, unknown>[]> {
  const callOff = listenFor(SILENCE_MS, () => streamOf(client).destroy())
  try {
    return rowsOf(await client.query(query))
  } finally {
    callOff()
  }
}

/** Takes one sample a second of one instance over one connection, for as long as its postmaster lives. */
export class Sampler {
  readonly ring: SampleRing
  readonly #checkpoints: CheckpointStore
  readonly #follower: CheckpointFollower
  readonly #stalls: StallStore
  readonly #detector: StallDetector
  readonly #checkpointerSleep = new HungSleep()
  /** Commits of the agent's own session so far. */
  #ownCommits = 0
  readonly #o: SamplerOptions
  readonly #phase: number
  readonly #listeners = new Set<(sample: Sample) => void>()
  readonly #databaseSize = new SlowGauge(databaseSizeSql, 'database_size', 60_000)
  readonly #walSize = new SlowGauge(walSizeSql, 'wal_size', 10_000)
  #live: Live | null = null
  readonly #replayDelay = new ReplayDelay()
  readonly #sessionWaits = new SessionWaits()
  #before: Reading | null
  #health: SamplerHealth = 'connecting'
  #healthSince = performance.now()
  #stopped = false
  #sleep: { timer: NodeJS.Timeout; wake: () => void } | null = null
  readonly #progress = new CheckpointProgress()
  #attempts = 0
  /** Questions besides the tick since the last one was sent; answers come in the order of questions. */
  #asides = 0
  /** Own health: ticks that yielded no sample, since the agent started. */
  missed = 0
  taken = 0

  constructor(o: SamplerOptions) {
    this.#o = o
    this.ring = new SampleRing(join(o.directory, 'samples'), undefined, (e) => o.onStored('samples', e))
    this.#checkpoints = new CheckpointStore(join(o.directory, 'checkpoints.jsonl'), (e) =>
      o.onStored('checkpoints', e),
    )
    this.#stalls = new StallStore(join(o.directory, 'stalls.jsonl'), (e) => o.onStored('stalls', e))
    this.#detector = new StallDetector(o.stallAfterMs)
    this.#follower = new CheckpointFollower(o.layout.logDirectory, o.user, this.#checkpoints)
    this.#before = this.ring.trailer ? decodeReading(this.ring.trailer) : null
    // instances share the second between them
    this.#phase = Math.floor(Math.random() * SAMPLE_INTERVAL_MS)
  }

  get health(): SamplerHealth {
    return this.#health
  }

  /** How long its health has been what it is, ms. */
  get healthAgeMs(): number {
    return performance.now() - this.#healthSince
  }

  get identity(): LiveIdentity | null {
    return this.#live?.identity ?? null
  }

  /** The start that the engine runs since, where it followed a crash and its log says when it began and let clients in. */
  get crashStart(): CrashStart | null {
    const { crashStart } = this.#follower
    const since = this.identity?.startedAt ?? 0
    // the log may be behind; both clocks are this host's, of one of them only whole milliseconds are known
    return crashStart && since > 0 && crashStart.beganAt >= since - 1 ? crashStart : null
  }

  start(): void {
    void this.#loop()
  }

  /** There may be something to connect to: do not wait for the next try. */
  wake(): void {
    if (!this.#live) this.#sleep?.wake()
  }

  /** The postmaster is gone. */
  ended(): void {
    this.#followLog()
    this.#follower.ended()
    this.#progress.clear()
    this.#keepStall(this.#detector.end())
    this.#disconnect('connecting')
  }

  stop(): void {
    this.#stopped = true
    void this.#live?.client.end().catch(() => {})
    this.#live = null
    this.#sleep?.wake()
    this.#keepStall(this.#detector.end())
    this.ring.close()
  }

  subscribe(listener: (sample: Sample) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Asks something else over the session's connection, e.g. for /metrics; null while there is none. */
  async ask(sql: string): Promise<Record<string, unknown>[] | null> {
    if (!this.#live) return null
    this.#asides++
    return rowsOf(await this.#live.client.query(`${countAtOnce}; ${sql}`))
  }

  readCheckpoints(
    afterSeq: number,
    limit: number,
  ): Pick<z.output<typeof CheckpointRead>, 'checkpoints' | 'running'> {
    return { checkpoints: this.#checkpoints.read(afterSeq, limit), running: this.#progress.running }
  }

  /** Those after a number, none without one, and the one that lasts. */
  readStalls(
    afterSeq: number | null,
    limit: number,
  ): Pick<z.output<typeof CheckpointRead>, 'stalls' | 'runningStall'> {
    return {
      stalls: afterSeq === null ? [] : this.#stalls.read(afterSeq, limit),
      runningStall: this.#detector.running,
    }
  }

  async #loop(): Promise<void> {
    while (!this.#stopped) {
      if (!this.#live) {
        if (!this.#o.postmaster()) {
          this.ring.writeAgain()
          this.#checkpoints.write()
          this.#stalls.write()
          await this.#pause(1_000)
          continue
        }
        await this.#connect()
        if (!this.#live) {
          await this.#pause(Math.min(1_000, 50 * 2 ** Math.min(this.#attempts++, 5)))
          continue
        }
        this.#attempts = 0
      }
      await this.#pauseToTick()
      if (this.#stopped || !this.#live) continue
      const started = performance.now()
      try {
        await this.#tick(this.#live, started)
        this.taken++
      } catch (error) {
        this.missed++
        const state = sqlState(error)
        if (state === null || state.startsWith('57P') || state.startsWith('08'))
          this.#disconnect(state === CANNOT_CONNECT_NOW ? 'refused' : 'connecting')
        this.#o.log.warn('sample.missed', {
          name: this.#o.name,
          reason: error instanceof Error ? error.message : String(error),
        })
      }
      const late = Math.floor((performance.now() - started) / SAMPLE_INTERVAL_MS)
      this.missed += late
    }
  }

  async #connect(): Promise<void> {
    let client: pg.Client | null = null
    try {
      client = await connectEngine(this.#o.address(), {
        applicationName: 'floe agent',
        connectMs: 3_000,
        statementMs: FIRST_STATEMENT_MS,
        settings: sessionSettings,
      })
      const views = await rowsInTime(client, { text: columnsSql, values: [decidingViews] })
      const [id = {}] = await rowsInTime(client, { text: identitySql })
      if (this.#stopped) throw new Error('stopped')
      this.#live = {
        client,
        statement: tickStatement(views as ViewColumns[]),
        configurationLoaded: null,
        history: null,
        identity: {
          version: String(id.version),
          systemIdentifier: String(id.system_identifier),
          timeline: Number(id.timeline),
          dataChecksums: id.checksums === 'on',
          startedAt: 0,
          inRecovery: false,
          pendingRestart: [],
          replication: null,
        },
      }
      await this.#tick(this.#live, performance.now())
      await this.#aside(this.#live, `set statement_timeout = ${STATEMENT_MS}`)
      this.#setHealth('connected')
    } catch (error) {
      this.#live = null
      void client?.end().catch(() => {})
      const state = sqlState(error)
      if (state === CANNOT_CONNECT_NOW) this.#setHealth('refused')
      else if (state !== null) this.#setHealth('busy')
      else this.#setHealth('connecting')
    }
  }

  async #tick(live: Live, started: number): Promise<void> {
    if (this.#before) this.#before.ownTransactions = 1 + this.#asides
    this.#ownCommits += 1 + this.#asides
    this.#asides = 0
    const before = process.hrtime.bigint()
    const [row = {}] = await rowsInTime(live.client, {
      name: 'tick',
      text: live.statement,
      values: [live.history?.timeline ?? null],
    })
    const after = process.hrtime.bigint()
    const roundTripMs = Number(after - before) / 1e6
    row.replay_delay = this.#replayDelay.of(row.replay_delay, Number(after) / 1e6)
    const waits = this.#sessionWaits.between(row.session_waits, row.dispatcher_reset)
    row.session_wait_p50 = waits?.p50
    row.session_wait_p99 = waits?.p99
    const reading = readingFromRow(row, Number(before) / 1e6 + roundTripMs / 2, roundTripMs / 2)
    const limits = this.#addHost(reading)
    this.#followLog()
    this.#addCheckpoint(row, reading)
    this.#lookForStall(row, reading, limits)
    await this.#addSlow(live, reading)
    await this.#updateIdentity(live, row, reading)
    reading.gauges.sample_time = performance.now() - started
    this.#keep(reading)
  }

  /** A log that cannot be read says nothing about the connection, and must not cost it. */
  #followLog(): void {
    try {
      this.#follower.step()
      this.#checkpoints.write()
    } catch (error) {
      this.#o.onStored('checkpoints', error)
    }
  }

  #aside({ client }: Live, sql: string): Promise<Record<string, unknown>[]> {
    this.#asides++
    return rowsInTime(client, { text: `${countAtOnce}; ${sql}` })
  }

  #addHost(reading: Reading): LimitReading | null {
    const postmaster = this.#o.postmaster()
    const totals = postmaster && readProcessTotals(postmaster.pid, this.#o.tree)
    if (totals) {
      reading.counters.process_cpu_time = totals.cpuSeconds
      if (totals.readBytes !== null) reading.counters.process_read_bytes = totals.readBytes
      if (totals.writeBytes !== null) reading.counters.process_write_bytes = totals.writeBytes
      reading.gauges.process_memory = totals.memoryBytes
      reading.gauges.processes = totals.processes
    }
    const limits = this.#o.limits()
    if (limits) addLimits(reading, limits)
    try {
      const fs = statfsSync(this.#o.layout.dataDirectory)
      reading.gauges.disk_size = fs.blocks * fs.bsize
      reading.gauges.disk_free = fs.bavail * fs.bsize
    } catch {
      // unknown stays unknown
    }
    return limits
  }

  #addCheckpoint(row: Record<string, unknown>, reading: Reading): void {
    const before = this.#before?.counters.checkpoint_buffers ?? null
    this.#progress.update(row, this.#follower.running, reading.counters.checkpoint_buffers ?? null, before)
    const { running } = this.#progress
    reading.gauges.checkpoint_running = running ? 1 : 0
    if (!running) return
    reading.gauges.checkpoint_running_time = Math.max(0, (reading.at - running.startedAt) / 1_000)
    if (running.buffersWritten !== null) reading.gauges.checkpoint_running_buffers = running.buffersWritten
  }

  #lookForStall(row: Record<string, unknown>, reading: Reading, limits: LimitReading | null): void {
    const { running } = this.#progress
    const { xact_commit: commits } = reading.counters
    // the instance says which process it is; one that is not the postmaster's child is not believed to be
    const sleep = lookAtSleep(row.checkpointer_pid, this.#o.postmaster()?.pid, reading.monotonic)
    const ended = row.ended_transactions
    const devices = limits ? limitedDevices(limits) : []
    const stall = this.#detector.see({
      at: reading.at,
      life: reading.postmasterStart,
      commits: commits === undefined ? null : commits - this.#ownCommits,
      endedTransactions: typeof ended === 'number' ? ended : null,
      ...stuckFromRow(row),
      checkpoint: running && { kind: running.kind, phase: running.phase ?? null },
      checkpointerStopped: sleep !== null && /^[Tt]$/.test(sleep.state),
      checkpointerHangsIn: this.#checkpointerSleep.see(sleep),
      devices,
      devicesBusyMs: limits && devices.length > 0 ? busyOfDevices(limits) : null,
      ioWaitSeconds: limits?.use.ioWaitSeconds ?? null,
      cpuThrottledSeconds: limits?.use.cpuThrottledSeconds ?? null,
      memoryWaitSeconds: limits?.use.memoryWaitSeconds ?? null,
    })
    this.#keepStall(stall)
  }

  #keepStall(stall: StallRecord | null): void {
    if (stall) this.#stalls.append(stall)
    else this.#stalls.write()
  }

  async #addSlow(live: Live, reading: Reading): Promise<void> {
    for (const gauge of [this.#databaseSize, this.#walSize]) {
      const now = performance.now()
      if (gauge.isDue(now)) {
        await gauge.measure(async () => (await this.#aside(live, gauge.sql))[0] ?? {}, now)
      }
      const value = gauge.value(now)
      if (value !== null) reading.gauges[gauge.metric] = value
    }
  }

  async #updateIdentity(live: Live, row: Record<string, unknown>, reading: Reading): Promise<void> {
    live.identity.startedAt = reading.postmasterStart
    const state = row.replication_state as Record<string, unknown>
    live.history = historyOf(state, live.history)
    const seen = ReplicationObserved.safeParse({
      ...state,
      ancestors: live.history?.ancestors ?? null,
      at: reading.at,
      replayDelayMs: typeof row.replay_delay === 'number' ? row.replay_delay * 1_000 : null,
    })
    live.identity.replication = seen.success ? seen.data : null
    if (live.identity.inRecovery !== row.in_recovery) {
      live.identity.inRecovery = row.in_recovery === true
      this.#o.onHealth()
    }
    const loaded = Number(row.configuration_loaded)
    if (loaded === live.configurationLoaded) return
    live.configurationLoaded = loaded
    const rows = await this.#aside(live, pendingRestartSql)
    live.identity.pendingRestart = rows.map((x) => String(x.name))
    this.#o.onHealth()
  }

  /** The first reading of a life of the postmaster is only what the next one is measured against. */
  #keep(reading: Reading): void {
    const before = this.#before
    this.#before = reading
    if (!before || reading.monotonic - before.monotonic > BRIDGE_MS) return
    const between = valuesBetween(before, reading)
    if (!between) return
    const sample = { at: reading.at, intervalMs: between.intervalMs, values: between.values }
    const seq = this.ring.append(sample, encodeReading(reading))
    for (const listener of this.#listeners) listener({ seq, ...sample })
  }

  #disconnect(health: SamplerHealth): void {
    const live = this.#live
    this.#live = null
    if (live) void live.client.end().catch(() => {})
    this.#setHealth(health)
  }

  #setHealth(health: SamplerHealth): void {
    if (health === this.#health || this.#stopped) return
    this.#health = health
    this.#healthSince = performance.now()
    this.#o.onHealth()
  }

  #pauseToTick(): Promise<void> {
    const now = performance.now()
    const next = Math.ceil((now - this.#phase + 1) / SAMPLE_INTERVAL_MS) * SAMPLE_INTERVAL_MS + this.#phase
    return this.#pause(next - now)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        this.#sleep = null
        resolve()
      }
      const timer = setTimeout(wake, ms)
      this.#sleep = { timer, wake }
    })
  }
}
