import type { Log } from '@floe/host/log'

const TICK_MS = 500
/** A tick that comes later than this was kept from coming: the process was stopped, or the machine slept. */
const STANDSTILL_MS = 3_000

/** Milliseconds of a clock that never goes back, and of the one on the wall. */
export type Moment = { monotonic: number; wall: number }

const clocks = (): Moment => ({ monotonic: performance.now(), wall: Date.now() })

/**
 * Knows since when this process has been at work without standing still. Who stood still heard from nobody: silence counts
 * again from there, and what is stored of hosts may be as old as the standstill. The monotonic clock shows a stopped
 * process; that of the wall shows a machine that slept, too. A wall clock that was set forward counts as a standstill, which
 * costs a second look and nothing else.
 */
export class Standstills {
  readonly #log: Pick<Log, 'warn'>
  readonly #now: () => Moment
  #last: Moment
  #since: Moment
  #timer: NodeJS.Timeout | undefined

  constructor(log: Pick<Log, 'warn'>, now: () => Moment = clocks) {
    this.#log = log
    this.#now = now
    this.#last = now()
    this.#since = this.#last
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), TICK_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  now(): Moment {
    return this.#look()
  }

  /** When the newest standstill ended; without any, when the process began. Looks first: a woken loop may ask before the tick. */
  since(): Moment {
    this.#look()
    return this.#since
  }

  #look(): Moment {
    const now = this.#now()
    const lasted = Math.max(now.monotonic - this.#last.monotonic, now.wall - this.#last.wall)
    this.#last = now
    if (lasted < STANDSTILL_MS) return now
    this.#since = now
    this.#log.warn('controller.stood_still', { lastedMs: Math.round(lasted) })
    return now
  }
}
