const KEPT_MS = 5 * 60_000
const KEPT_MAX = 1_000

/**
 * Passwords just made, by who asked and their idempotency key, in memory only and for five minutes: a request whose
 * answer was lost on the way can be repeated and gets the same answer.
 */
export class RecentPasswords {
  readonly #kept = new Map<string, { password: string; until: number }>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  keep(actor: string, idempotencyKey: string, password: string) {
    this.#forget()
    this.#kept.set(`${actor} ${idempotencyKey}`, { password, until: this.#now() + KEPT_MS })
    if (this.#kept.size > KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value as string)
  }

  find(actor: string, idempotencyKey: string): string | null {
    this.#forget()
    return this.#kept.get(`${actor} ${idempotencyKey}`)?.password ?? null
  }

  #forget() {
    const now = this.#now()
    for (const [key, entry] of this.#kept) if (entry.until <= now) this.#kept.delete(key)
  }
}
