import type { InstanceId } from '@floe/domain'
import type { Sample } from '@floe/telemetry'
import type { Feeds } from './feeds'
import type { InstanceFeed } from './instance-feed'

/** More than this is not sent one by one: the reader is asked to read the history again (a laptop that slept all night). */
export const RESUME_MAX = 3_600
const READ_LIMIT = 600
/** How long new samples are held back while those before them cannot be read. */
const GIVE_UP_MS = 10_000
/** Samples of several instances that arrive within this time leave in one event. */
const GATHER_MS = 60

export type FollowEvent =
  | { type: 'samples'; samples: { instanceId: InstanceId; sample: Sample }[] }
  | { type: 'reset'; instanceId: InstanceId; newestSeq: number }

export type FollowPorts = {
  feeds: Feeds
  /** Stored samples after a number, for what the agent's ring does not hold any more. */
  stored(instanceId: InstanceId, afterSeq: number, limit: number): Promise<Sample[]>
}

type Reader = { instanceId: InstanceId; feed: InstanceFeed; cursor: number | null; stuckAt: number | null }

/**
 * Follows several instances from given positions: first what was missed, then each new sample, per instance in ascending
 * order without gap or duplicate. Everything is pulled: between two events nothing is kept but one number an instance.
 * `positions` in each event are the newest numbers that were sent, in the order asked for; following on from them later
 * (another connection, another process) continues exactly there.
 */
export async function* follow(
  ports: FollowPorts,
  instances: readonly { instanceId: InstanceId; afterSeq: number | null }[],
  signal: AbortSignal | undefined,
): AsyncGenerator<{ event: FollowEvent; positions: (number | null)[] }> {
  const held = instances.map((i) => ports.feeds.acquire(i.instanceId))
  const readers: Reader[] = instances.map((i, n) => ({
    instanceId: i.instanceId,
    feed: (held[n] as (typeof held)[number]).feed,
    cursor: i.afterSeq,
    stuckAt: null,
  }))
  const positions = () => readers.map((r) => r.cursor)
  let news = true
  let wake: () => void = () => {}
  const onNews = () => {
    news = true
    wake()
  }
  const stops = readers.map((r) => r.feed.onSample(onNews))
  signal?.addEventListener('abort', onNews, { once: true })
  try {
    // what was missed is asked for at once; without it the first live sample would have to come first
    for (const r of readers) {
      for await (const event of catchUp(ports, r, signal)) yield { event, positions: positions() }
      if (signal?.aborted) return
    }
    while (!signal?.aborted) {
      if (!news)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      if (signal?.aborted) return
      if (readers.length > 1) await new Promise((resolve) => setTimeout(resolve, GATHER_MS))
      news = false
      const gathered: { instanceId: InstanceId; sample: Sample }[] = []
      for (const r of readers) {
        const newest = r.feed.newestSeq
        if (newest === null) continue
        if (r.cursor === null || !r.feed.after(r.cursor).complete || newest < r.cursor) {
          for await (const event of catchUp(ports, r, signal)) yield { event, positions: positions() }
          if (r.cursor !== null && !r.feed.after(r.cursor).complete) {
            // what lies between cannot be read now: better a little later than with a hole, but not for ever
            r.stuckAt ??= Date.now()
            if (Date.now() - r.stuckAt < GIVE_UP_MS) continue
          }
          r.stuckAt = null
        }
        const { samples } = r.feed.after(r.cursor ?? newest)
        for (const sample of samples) gathered.push({ instanceId: r.instanceId, sample })
        r.cursor = samples.at(-1)?.seq ?? r.cursor
      }
      if (gathered.length > 0) yield { event: { type: 'samples', samples: gathered }, positions: positions() }
    }
  } finally {
    signal?.removeEventListener('abort', onNews)
    for (const stop of stops) stop()
    for (const h of held) h.release()
  }
}

/** Brings a reader up to what its feed keeps: from the agent's ring, before that from what is stored. */
async function* catchUp(
  ports: FollowPorts,
  r: Reader,
  signal: AbortSignal | undefined,
): AsyncGenerator<FollowEvent> {
  while (!signal?.aborted) {
    if (r.cursor === null) {
      // no position: begin with the newest sample there is
      const newest = r.feed.newestSeq
      if (newest !== null) r.cursor = newest - 1
      return
    }
    const newest = r.feed.newestSeq
    if (newest !== null && newest < r.cursor) {
      r.cursor = newest
      yield { type: 'reset', instanceId: r.instanceId, newestSeq: newest }
      return
    }
    if (newest !== null && r.feed.after(r.cursor).complete) return
    const missed = await read(ports, r)
    if (missed === null || r.cursor === null) return
    if (missed.reset !== null) {
      r.cursor = missed.reset
      yield { type: 'reset', instanceId: r.instanceId, newestSeq: missed.reset }
      continue
    }
    if (missed.samples.length === 0) return
    r.cursor = (missed.samples.at(-1) as Sample).seq
    yield {
      type: 'samples',
      samples: missed.samples.map((sample) => ({ instanceId: r.instanceId, sample })),
    }
  }
}

/** null: nobody can say now; the feed's next sample asks again. */
async function read(
  ports: FollowPorts,
  r: Reader,
): Promise<{ samples: Sample[]; reset: number | null } | null> {
  const after = r.cursor as number
  try {
    const { samples, newestSeq } = await r.feed.read(after, READ_LIMIT)
    if (newestSeq === null) return null
    if (newestSeq < after || newestSeq - after > RESUME_MAX) return { samples: [], reset: newestSeq }
    const first = samples[0]
    if (!first) return null
    if (first.seq > after + 1) {
      const stored = await ports.stored(r.instanceId, after, READ_LIMIT)
      const older = stored.filter((s) => s.seq < first.seq)
      if (older.length > 0) return { samples: older, reset: null }
    }
    return { samples, reset: null }
  } catch {
    // the agent does not answer: what is stored is better than nothing
    const samples = await ports.stored(r.instanceId, after, READ_LIMIT).catch(() => [])
    return samples.length > 0 ? { samples, reset: null } : null
  }
}
