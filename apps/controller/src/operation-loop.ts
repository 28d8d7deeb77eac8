import {
  type Database,
  isDatabaseAway,
  LeaseLostError,
  leaseOperations,
  type OperationHold,
  releaseOperationLeases,
  renewOperationLeases,
} from '@floe/db'
import type { Log } from '@floe/host/log'
import { pause } from '@floe/host/wait'
import { advanceOperation, PATIENCE, type Patience } from '@floe/operations'
import type { Agents } from './agents'
import { type DatabaseWatch, runLoop, Wake } from './loop'
import type { Standstills } from './standstills'

/** Operations of one host that one controller moves at once; the others stay queued. A host's disks have a limit. */
const PER_HOST = 8
const PER_LEASE = 16

export type LeaseTimes = { leaseMs: number; renewMs: number }

type Held = { hold: OperationHold & { hostId: string }; abort: AbortController; run: Promise<void> }

/** Leases operations and moves each in a course of its own, so that none waits for another's host. */
export class OperationLoop {
  readonly #db: Database
  readonly #agents: Agents
  readonly #log: Log
  readonly #database: DatabaseWatch
  readonly #owner: string
  readonly #times: LeaseTimes
  readonly #patience: Patience
  readonly #held = new Map<string, Held>()
  readonly #wake = new Wake()
  readonly #standstills: Pick<Standstills, 'since'>

  constructor(parts: {
    db: Database
    agents: Agents
    log: Log
    database: DatabaseWatch
    owner: string
    times: LeaseTimes
    patience?: Patience | undefined
    standstills: Pick<Standstills, 'since'>
  }) {
    this.#db = parts.db
    this.#agents = parts.agents
    this.#log = parts.log
    this.#database = parts.database
    this.#owner = parts.owner
    this.#times = parts.times
    this.#patience = parts.patience ?? PATIENCE
    this.#standstills = parts.standstills
  }

  /** Something was queued: look now. */
  wake(): void {
    this.#wake.now()
  }

  /** Runs until the signal is aborted, then lets passes end and gives the leases back. */
  async run(signal: AbortSignal): Promise<void> {
    const loop = { signal, log: this.#log, database: this.#database }
    await Promise.all([
      runLoop({ ...loop, name: 'lease operations', everyMs: 500, wake: this.#wake }, () =>
        this.#lease(signal),
      ),
      runLoop({ ...loop, name: 'renew operation leases', everyMs: this.#times.renewMs }, () => this.#renew()),
    ])
    const held = [...this.#held.values()]
    for (const { abort } of held) abort.abort()
    await Promise.all(held.map(({ run }) => run))
    const holds = held.map(({ hold }) => hold)
    if (holds.length > 0)
      await releaseOperationLeases(this.#db.pool, holds).catch((error) => this.#database.missed(error))
  }

  async #lease(signal: AbortSignal): Promise<void> {
    const perHost = new Map<string, number>()
    for (const { hold } of this.#held.values()) perHost.set(hold.hostId, (perHost.get(hold.hostId) ?? 0) + 1)
    const leased = await leaseOperations(this.#db.pool, {
      owner: this.#owner,
      leaseMs: this.#times.leaseMs,
      limit: PER_LEASE,
      busyHostIds: [...perHost].filter(([, n]) => n >= PER_HOST).map(([hostId]) => hostId),
    })
    for (const hold of leased) {
      // an own lease that expired while the database was away is taken again: the old run ends by its old token
      this.#held.get(hold.operationId)?.abort.abort()
      const abort = new AbortController()
      const held: Held = { hold, abort, run: Promise.resolve() }
      this.#held.set(hold.operationId, held)
      held.run = this.#course(held, signal)
    }
    if (leased.length === PER_LEASE) this.#wake.now()
  }

  async #renew(): Promise<void> {
    const held = [...this.#held.values()]
    if (held.length === 0) return
    const kept = await renewOperationLeases(
      this.#db.pool,
      held.map(({ hold }) => hold),
      this.#times.leaseMs,
    )
    for (const { hold, abort } of held) if (!kept.has(hold.operationId)) abort.abort()
  }

  /** Passes over one operation until it ended, its lease is lost, or the controller stops. */
  async #course(held: Held, stop: AbortSignal): Promise<void> {
    const { hold } = held
    const signal = AbortSignal.any([stop, held.abort.signal])
    let failures = 0
    while (!signal.aborted) {
      let pauseMs: number
      try {
        const advanced = await advanceOperation(hold, {
          pool: this.#db.pool,
          agentOf: (hostId) => this.#agents.of(hostId).tasks,
          now: () => new Date(),
          atWorkSince: new Date(this.#standstills.since().wall),
          patience: this.#patience,
          log: (event, fields) => this.#log.info(event, fields),
        })
        failures = 0
        if (advanced.ended) break
        pauseMs = advanced.pauseMs
      } catch (error) {
        if (error instanceof LeaseLostError) {
          this.#log.warn('operation.lease_lost', { operationId: hold.operationId })
          break
        }
        failures++
        pauseMs = Math.min(250 * 2 ** failures, 5_000)
        if (isDatabaseAway(error)) this.#database.missed(error)
        else
          this.#log.error('operation.pass_failed', {
            operationId: hold.operationId,
            failures,
            reason: error instanceof Error ? (error.stack ?? error.message) : String(error),
          })
      }
      await pause(pauseMs, signal)
    }
    // when the controller stops, the holds stay listed: they are given back together
    if (!stop.aborted && this.#held.get(hold.operationId) === held) {
      this.#held.delete(hold.operationId)
      this.#wake.now()
    }
  }
}
