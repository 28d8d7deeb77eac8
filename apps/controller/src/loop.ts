import { isDatabaseAway } from '@floe/db'
import type { Log } from '@floe/host/log'
import { pause } from '@floe/host/wait'

/** A pause that others can cut short. */
export class Wake {
  #end: (() => void) | undefined
  #pending = false

  now(): void {
    if (this.#end) this.#end()
    else this.#pending = true
  }

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#pending) {
      this.#pending = false
      return
    }
    const woken = new AbortController()
    this.#end = () => woken.abort()
    await pause(ms, AbortSignal.any([signal, woken.signal]))
    this.#end = undefined
  }
}

/** Says once when the control database goes and once when it is back, however many loops notice. */
export class DatabaseWatch {
  readonly #log: Log
  #awaySince: number | undefined
  #saidAt = 0

  constructor(log: Log) {
    this.#log = log
  }

  seen(): void {
    if (this.#awaySince === undefined) return
    this.#log.info('database.reachable', { awayMs: Date.now() - this.#awaySince })
    this.#awaySince = undefined
  }

  missed(error: unknown): void {
    const now = Date.now()
    this.#awaySince ??= now
    if (now - this.#saidAt < 30_000 && this.#saidAt >= this.#awaySince) return
    this.#saidAt = now
    this.#log.error('database.unreachable', {
      awayMs: now - this.#awaySince,
      reason: error instanceof Error ? error.message : String(error),
    })
  }
}

export type LoopOptions = {
  name: string
  /** Between the end of one pass and the start of the next. */
  everyMs: number
  signal: AbortSignal
  log: Log
  database: DatabaseWatch
  wake?: Wake
  fields?: Record<string, unknown>
}

/**
 * Runs `pass` until the signal is aborted. A pass that throws is logged and tried again, at most 5 s later: a
 * loop never ends by an error, and never spins on one.
 */
export async function runLoop(options: LoopOptions, pass: () => Promise<void>): Promise<void> {
  const { signal, log, database } = options
  let failures = 0
  while (!signal.aborted) {
    let waitMs = options.everyMs
    try {
      await pass()
      database.seen()
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      waitMs = Math.min(250 * 2 ** failures, 5_000)
      failures++
      if (isDatabaseAway(error)) database.missed(error)
      else
        log.error('loop.failed', {
          loop: options.name,
          ...options.fields,
          failures,
          reason: error instanceof Error ? (error.stack ?? error.message) : String(error),
        })
    }
    if (options.wake && failures === 0) await options.wake.wait(waitMs, signal)
    else await pause(waitMs, signal)
  }
}
