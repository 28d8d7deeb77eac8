/**
 * How far behind a standby's replay is. The server says how old the last transaction is that it replayed, which is the
 * time of idleness where its primary wrote nothing for a while. What waits to be replayed came after the moment when all
 * was replayed, so it cannot be older than that.
 */
export class ReplayDelay {
  #caughtUpAt: number | null = null

  /** Seconds behind; `said` is the server's own reading, 0 when nothing waits, and `at` its time in ms. */
  of(said: unknown, at: number): number | null {
    if (typeof said !== 'number') {
      this.#caughtUpAt = null
      return null
    }
    if (said === 0) this.#caughtUpAt = at
    const since = this.#caughtUpAt === null ? Number.POSITIVE_INFINITY : Math.max(0, at - this.#caughtUpAt)
    return Math.min(said, since / 1_000)
  }
}
