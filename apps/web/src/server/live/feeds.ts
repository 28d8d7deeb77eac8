import type { InstanceId } from '@floe/domain'
import { log } from '../log'
import { type FeedSource, InstanceFeed } from './instance-feed'

/** How long a feed outlives its last reader: a page that reloads finds it open. */
const LINGER_MS = 5_000

type Entry = { feed: InstanceFeed; readers: number; linger: ReturnType<typeof setTimeout> | null }

/** The feeds of this process, opened with the first reader of an instance and closed after its last one. */
export class Feeds {
  readonly #entries = new Map<InstanceId, Entry>()
  readonly #sourceOf: (instanceId: InstanceId) => FeedSource

  constructor(sourceOf: (instanceId: InstanceId) => FeedSource) {
    this.#sourceOf = sourceOf
  }

  /** Answers the feed and a function that must be called once when it is needed no more. */
  acquire(instanceId: InstanceId): { feed: InstanceFeed; release(): void } {
    let entry = this.#entries.get(instanceId)
    if (!entry) {
      entry = { feed: this.#open(instanceId), readers: 0, linger: null }
      this.#entries.set(instanceId, entry)
    }
    const held = entry
    held.readers++
    if (held.linger) clearTimeout(held.linger)
    held.linger = null
    let released = false
    return {
      feed: held.feed,
      release: () => {
        if (released) return
        released = true
        if (--held.readers > 0) return
        held.linger = setTimeout(() => {
          held.feed.close()
          this.#entries.delete(instanceId)
        }, LINGER_MS)
        held.linger.unref()
      },
    }
  }

  #open(instanceId: InstanceId) {
    return new InstanceFeed(this.#sourceOf(instanceId), (error) =>
      log.warn('feed.lost', { instanceId, message: error instanceof Error ? error.message : 'ended' }),
    )
  }

  /** Open feeds, for /healthz. */
  get size(): number {
    return this.#entries.size
  }

  close() {
    for (const entry of this.#entries.values()) {
      if (entry.linger) clearTimeout(entry.linger)
      entry.feed.close()
    }
    this.#entries.clear()
  }
}
