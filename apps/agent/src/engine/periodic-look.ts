type Asking<T> = {
  /** A change shows within this time. */
  everyMs: number
  ask: () => Promise<T | null>
  /** What of an answer a report must not miss; where that is another, `onChange` is called. */
  newsOf: (answer: T | null) => string
  onChange: () => void
}

/** What the engine is asked now and then over a connection that is there anyway, and what it answered last. */
export class PeriodicLook<T> {
  readonly #o: Asking<T>
  #answer: T | null = null
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(o: Asking<T>) {
    this.#o = o
  }

  get answer(): T | null {
    return this.#answer
  }

  /** Asks, at most every `everyMs`; what an engine that answers nobody had said is forgotten. */
  async look(answers: boolean, everyMs = this.#o.everyMs): Promise<void> {
    if (!answers) {
      this.#answer = null
      this.#askedAt = Number.NEGATIVE_INFINITY
      return
    }
    const now = performance.now()
    if (now - this.#askedAt < everyMs) return
    this.#askedAt = now
    const { ask, newsOf, onChange } = this.#o
    const before = newsOf(this.#answer)
    // an answer that does not come leaves the last one; whether the instance answers is the sampler's to say
    this.#answer = await ask().catch(() => this.#answer)
    if (newsOf(this.#answer) !== before) onChange()
  }
}
