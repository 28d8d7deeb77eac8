/** Lets one piece of work run at a time, in order. */
export class Turns {
  readonly #waitingMax: number
  readonly #refusal: () => Error
  #running = false
  readonly #waiting: (() => void)[] = []

  /** At most `waitingMax` wait for their turn; who comes then gets `refusal`. */
  constructor(
    waitingMax = Number.POSITIVE_INFINITY,
    refusal: () => Error = () => new Error('too many wait'),
  ) {
    this.#waitingMax = waitingMax
    this.#refusal = refusal
  }

  /** Runs `work` when it is its turn. Who gives up while waiting leaves the queue at once, with the signal's reason. */
  async take<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    if (this.#running) await this.#turn(signal)
    this.#running = true
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running = false
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.length >= this.#waitingMax) throw this.#refusal()
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(begin), 1)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiting.push(begin)
    })
  }
}
