import { randomUUID } from 'node:crypto'
import type { Log } from '@floe/host/log'
import { isHeldBack } from '../engine/cluster/keep-primary'
import { readFence } from '../engine/cluster/member-files'
import type { Instance } from '../engine/instance'
import type { Instances } from '../engine/instances'
import { BY_ITSELF, type TaskRunner } from '../tasks/runner/runner'

/**
 * When a crashed instance is started automatically: soon, then twice more. After that it stays down and a person has to look:
 * an engine that ends again and again needs more than a start.
 */
export const START_AFTER_MS = [2_000, 15_000, 60_000] as const
/** After so long without a crash the next one is a first one again. */
const STEADY_MS = 600_000
const LOOK_MS = 500

type Seen = { tries: number; crashedAt: number | null; runningAt: number | null }

/**
 * Starts instances that crashed, unless they are fenced: their recovery is what a person would start, too. A task that
 * somebody orders displaces such a start at once.
 */
export class CrashedInstances {
  readonly #instances: Instances
  readonly #tasks: TaskRunner
  readonly #log: Log
  readonly #seen = new Map<string, Seen>()
  #timer: NodeJS.Timeout | null = null

  constructor(instances: Instances, tasks: TaskRunner, log: Log) {
    this.#instances = instances
    this.#tasks = tasks
    this.#log = log
  }

  start(): void {
    this.#timer = setInterval(() => {
      for (const instance of this.#instances.list()) this.look(instance, performance.now())
    }, LOOK_MS)
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer)
  }

  look(instance: Instance, now: number): void {
    const { instanceId, state } = instance
    const seen = this.#seen.get(instanceId) ?? { tries: 0, crashedAt: null, runningAt: null }
    if (state === 'running') {
      seen.runningAt ??= now
      if (now - seen.runningAt >= STEADY_MS) seen.tries = 0
    } else seen.runningAt = null
    // a stop that was ordered resets it, too
    if (state === 'stopped') seen.tries = 0
    this.#seen.set(instanceId, seen)
    if (state !== 'crashed' || instance.activity !== null) {
      seen.crashedAt = null
      return
    }
    seen.crashedAt ??= now
    const after = START_AFTER_MS[seen.tries]
    if (after === undefined || now - seen.crashedAt < after || readFence(instance.layout)) return
    // the console starts it, once it is certain that nobody else was promoted
    if (isHeldBack(instance)) return
    try {
      this.#tasks.start({
        key: { operationId: randomUUID(), step: BY_ITSELF, attempt: seen.tries + 1 },
        task: { kind: 'start-instance', instanceId: instance.registered.instanceId },
      })
      seen.tries++
      this.#log.warn('instance.started_by_itself', { instanceId, try: seen.tries })
    } catch (error) {
      // another task works on it, or the disk is full: the next look shows it
      this.#log.info('instance.not_started_by_itself', { instanceId, reason: String(error) })
    }
  }
}
