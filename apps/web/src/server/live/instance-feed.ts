import type { Sample } from '@floe/telemetry'

/** What a feed needs of an agent; tests put their own in its place. */
export type FeedSource = {
  /** Opens the agent's stream after a sample (null: at the newest one). Resuming after a broken connection is its own affair. */
  open(
    afterSeq: number | null,
    on: { sample(sample: Sample): void; ended(error: unknown): void },
  ): { close(): void }
  /** Samples after a number from the agent's ring. Rejects when the agent does not answer. */
  read(afterSeq: number, limit: number): Promise<{ samples: Sample[]; newestSeq: number | null }>
}

/** How many samples a feed keeps, so that a reader that pauses for a moment needs no further question to the agent. */
export const FEED_KEEPS = 120
const RETRY_MS = [250, 500, 1_000, 2_000, 3_000]

/**
 * One instance's live samples in this process: one stream from its agent, however many readers there are. Readers pull
 * from the samples kept, so a slow reader costs no memory.
 */
export class InstanceFeed {
  #recent: Sample[] = []
  #stream: { close(): void } | null = null
  #retry: ReturnType<typeof setTimeout> | null = null
  #failures = 0
  #closed = false
  readonly #wakers = new Set<() => void>()
  readonly #source: FeedSource
  readonly #onLost: (error: unknown) => void

  /** `onLost`: called once each time the stream is lost, not at every try to get it back. */
  constructor(source: FeedSource, onLost: (error: unknown) => void = () => {}) {
    this.#source = source
    this.#onLost = onLost
    this.#connect()
  }

  /** Number of the newest sample seen; null before the first one. */
  get newestSeq(): number | null {
    return this.#recent.at(-1)?.seq ?? null
  }

  /** Samples after a number that are kept, and whether those before them would have to be fetched. */
  after(seq: number): { samples: Sample[]; complete: boolean } {
    const oldest = this.#recent[0]
    if (!oldest) return { samples: [], complete: true }
    return { samples: this.#recent.filter((s) => s.seq > seq), complete: oldest.seq <= seq + 1 }
  }

  /** Samples from the agent's ring, for readers that have missed more than is kept here. */
  read(afterSeq: number, limit: number) {
    return this.#source.read(afterSeq, limit)
  }

  /** Calls `wake` at every new sample until the answer is called. */
  onSample(wake: () => void): () => void {
    this.#wakers.add(wake)
    return () => this.#wakers.delete(wake)
  }

  close() {
    this.#closed = true
    if (this.#retry) clearTimeout(this.#retry)
    this.#stream?.close()
    this.#stream = null
  }

  #connect() {
    if (this.#closed) return
    this.#stream = this.#source.open(this.newestSeq, {
      sample: (sample) => this.#take(sample),
      ended: (error) => {
        this.#stream?.close()
        this.#stream = null
        if (this.#closed || this.#retry) return
        if (this.#failures === 0) this.#onLost(error)
        const wait = RETRY_MS[Math.min(this.#failures++, RETRY_MS.length - 1)] as number
        this.#retry = setTimeout(() => {
          this.#retry = null
          this.#connect()
        }, wait)
      },
    })
  }

  #take(sample: Sample) {
    this.#failures = 0
    const newest = this.newestSeq
    // numbering starts again only where an agent lost its files: then the kept samples belong to another series
    if (newest !== null && sample.seq <= newest) {
      if (sample.at <= (this.#recent.at(-1) as Sample).at) return
      this.#recent = []
    }
    this.#recent.push(sample)
    if (this.#recent.length > FEED_KEEPS) this.#recent.shift()
    for (const wake of this.#wakers) wake()
  }
}
