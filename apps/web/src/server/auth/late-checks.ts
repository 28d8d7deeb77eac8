/** How long a check waits after the one before it has ended, and the first of all. */
const EVERY_MS = 1_000
/** Checks that wait, together and of one origin: who comes then is refused. The last one waits about as many seconds. */
const WAITING_MAX = 20
const OF_ORIGIN_MAX = 10

type Waiting = { run(): Promise<void>; refuse(): void }

/**
 * Passphrases that are looked at although too many were wrong: late, one at a time, so that guesses of strangers keep the
 * rightful owner waiting but not out.
 *
 * The bound: less than 60 checks a minute in this process, of all accounts together. With what SignInLimit lets through, an
 * account is guessed at no more than 160 times a minute, by however many strangers; hashing takes one processor at most a
 * fraction of the time; and no more than 20 requests are kept waiting.
 *
 * Origins take turns, and one that has few waiting displaces the newest of the one that has most, so nobody holds the queue
 * by asking often. Who floods the console through the very address of the owner (a proxy that is not in `trustedProxies`)
 * takes most of that origin's places; a browser that was signed in before is an origin of its own.
 */
export class LateChecks {
  readonly #everyMs: number
  /** By origin; the first is the next whose turn it is, and none is empty. */
  readonly #waiting = new Map<string, Waiting[]>()
  #working = false

  constructor(everyMs = EVERY_MS) {
    this.#everyMs = everyMs
  }

  /** What `check` answers when it is its turn; null when it is refused, or given up by its signal while it waits. */
  take<T>(origin: string, check: () => Promise<T>, signal?: AbortSignal): Promise<T | null> {
    if (signal?.aborted || !this.#makeRoom(origin)) return Promise.resolve(null)
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#remove(origin, waiting)
        resolve(null)
      }
      const waiting: Waiting = {
        run: () => {
          signal?.removeEventListener('abort', leave)
          return check().then(resolve, reject)
        },
        refuse: () => {
          signal?.removeEventListener('abort', leave)
          resolve(null)
        },
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiting.set(origin, [...(this.#waiting.get(origin) ?? []), waiting])
      if (!this.#working) void this.#work()
    })
  }

  /** Whether one more of an origin may wait. */
  #makeRoom(origin: string): boolean {
    const own = this.#waiting.get(origin)?.length ?? 0
    if (own >= OF_ORIGIN_MAX) return false
    const all = [...this.#waiting.values()]
    if (all.reduce((sum, those) => sum + those.length, 0) < WAITING_MAX) return true
    const most = all.reduce((longest, those) => (those.length > longest.length ? those : longest))
    if (most.length <= own + 1) return false
    most.pop()?.refuse()
    return true
  }

  async #work(): Promise<void> {
    this.#working = true
    while (this.#waiting.size > 0) {
      await new Promise((resolve) => setTimeout(resolve, this.#everyMs).unref())
      await this.#next()?.run()
    }
    this.#working = false
  }

  #next(): Waiting | undefined {
    const [first] = this.#waiting
    if (first === undefined) return undefined
    const [origin, [next, ...others]] = first
    // behind all other origins
    this.#waiting.delete(origin)
    if (others.length > 0) this.#waiting.set(origin, others)
    return next
  }

  #remove(origin: string, waiting: Waiting): void {
    const others = (this.#waiting.get(origin) ?? []).filter((w) => w !== waiting)
    if (others.length > 0) this.#waiting.set(origin, others)
    else this.#waiting.delete(origin)
  }
}
