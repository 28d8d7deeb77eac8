import { type AuditEvent, type Database, insertAuditEvent } from '@floe/db'
import { log } from './log'

/** Rows that one cause may write in a window. */
export const ROWS_MAX = 60
const WINDOW_MS = 60_000
const CAUSES_MAX = 10_000

/** Of a cause from its first denial on. */
type Window = {
  since: number
  written: number
  /** Denials beyond the bound that no row records yet, and the newest of them. */
  left: number
  newest: AuditEvent | null
}

/**
 * Audit rows of denials, bounded by cause: deliberate denials must not fill the control database. Beyond the bound
 * they are counted; the count is written with the newest of them when the window ends, and when the process does.
 */
export class DenialRows {
  readonly #database: Pick<Database, 'pool'>
  readonly #windowMs: number
  readonly #windows = new Map<string, Window>()
  /** Windows with denials that no row records. */
  readonly #counting = new Map<Window, NodeJS.Timeout>()

  constructor(database: Pick<Database, 'pool'>, windowMs = WINDOW_MS) {
    this.#database = database
    this.#windowMs = windowMs
  }

  /** Writes a row of a denial, or counts it; `whole` adds to a row what is not worth finding out for a count. */
  async write(
    cause: string,
    event: AuditEvent,
    whole = async (): Promise<AuditEvent> => event,
  ): Promise<void> {
    const window = this.#windowOf(cause)
    if (window.written < ROWS_MAX) {
      window.written++
      await this.#insert(await whole())
      return
    }
    window.left++
    window.newest = event
    this.#writeLater(window, window.since + this.#windowMs - Date.now())
  }

  /** Writes what was only counted until now. */
  async flush(): Promise<void> {
    await Promise.all([...this.#counting.keys()].map((window) => this.#writeCount(window)))
  }

  /** As flush; what cannot be written stays in the log alone. */
  async close(): Promise<void> {
    await this.flush()
    for (const [{ left, newest }, timer] of this.#counting) {
      clearTimeout(timer)
      log.error('audit.denials_lost', { denials: left, newest })
    }
    this.#counting.clear()
  }

  #windowOf(cause: string): Window {
    const before = this.#windows.get(cause)
    if (before && Date.now() - before.since < this.#windowMs) return before
    const window = { since: Date.now(), written: 0, left: 0, newest: null }
    // to the end: the first one is always the one that began longest ago
    this.#windows.delete(cause)
    this.#windows.set(cause, window)
    if (this.#windows.size > CAUSES_MAX) this.#windows.delete(this.#windows.keys().next().value as string)
    return window
  }

  #writeLater(window: Window, inMs: number): void {
    if (this.#counting.has(window)) return
    this.#counting.set(window, setTimeout(() => void this.#writeCount(window), Math.max(0, inMs)).unref())
  }

  async #writeCount(window: Window): Promise<void> {
    clearTimeout(this.#counting.get(window))
    this.#counting.delete(window)
    const { left, newest } = window
    if (newest === null) return
    window.left = 0
    window.newest = null
    const others = left > 1 ? { denialsBeforeWithoutRow: left - 1 } : {}
    if (await this.#insert({ ...newest, detail: { ...newest.detail, ...others } })) return
    window.left += left
    window.newest ??= newest
    this.#writeLater(window, this.#windowMs)
  }

  async #insert(event: AuditEvent): Promise<boolean> {
    try {
      await insertAuditEvent(this.#database.pool, event)
      return true
    } catch (err) {
      // the denial holds whether or not it can be written down
      log.error('audit.failed', { action: event.action, err })
      return false
    }
  }
}
