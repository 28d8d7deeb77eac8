/** Failures an e-mail address may have within the window before it has to wait; guards against guessing from many addresses. */
const FAILURES_MAX = 5
const WINDOW_MS = 60_000
const KEPT_MAX = 10_000

/** Counts failed sign-ins by e-mail address in this process. */
export class SignInLimit {
  readonly #failures = new Map<string, number[]>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Milliseconds the address has to wait; 0 when it may try. */
  waitMs(email: string): number {
    const recent = this.#recent(email)
    if (recent.length < FAILURES_MAX) return 0
    return Math.max(0, (recent[recent.length - FAILURES_MAX] as number) + WINDOW_MS - this.#now())
  }

  failed(email: string) {
    const key = email.toLowerCase()
    this.#failures.set(key, [...this.#recent(email), this.#now()])
    if (this.#failures.size > KEPT_MAX) this.#failures.delete(this.#failures.keys().next().value as string)
  }

  succeeded(email: string) {
    this.#failures.delete(email.toLowerCase())
  }

  #recent(email: string): number[] {
    const since = this.#now() - WINDOW_MS
    return (this.#failures.get(email.toLowerCase()) ?? []).filter((at) => at > since)
  }
}
