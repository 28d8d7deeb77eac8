import { InstanceId } from '@floe/domain'
import type { Sample } from '@floe/telemetry'
import { afterEach, expect, test, vi } from 'vitest'
import { Feeds } from './feeds'
import { type FollowEvent, follow, RESUME_MAX } from './follow'
import { FEED_KEEPS, type FeedSource } from './instance-feed'

const a = InstanceId.parse('00000000-0000-4000-8000-00000000000a')
const b = InstanceId.parse('00000000-0000-4000-8000-00000000000b')
const sampleOf = (seq: number): Sample => ({ seq, at: seq * 1_000, intervalMs: 1_000, values: { tps: seq } })

/** An agent in memory: a ring of samples, and streams that a test can break. */
function source() {
  const ring: Sample[] = []
  const streams = new Set<Parameters<FeedSource['open']>[1]>()
  const it = {
    ring,
    streams,
    reachable: true,
    reads: 0,
    opens: 0,
    add(until: number, from = (ring.at(-1)?.seq ?? 0) + 1) {
      for (let seq = from; seq <= until; seq++) {
        ring.push(sampleOf(seq))
        for (const on of streams) on.sample(sampleOf(seq))
      }
    },
    breakStreams() {
      for (const on of [...streams]) {
        streams.delete(on)
        on.ended(new Error('connection reset'))
      }
    },
    feed: {
      open(afterSeq, on) {
        it.opens++
        if (!it.reachable) {
          queueMicrotask(() => on.ended(new Error('connection refused')))
          return { close() {} }
        }
        streams.add(on)
        queueMicrotask(() => {
          for (const s of ring.filter((r) => r.seq > (afterSeq ?? (ring.at(-1)?.seq ?? 1) - 1))) on.sample(s)
        })
        return { close: () => streams.delete(on) }
      },
      async read(afterSeq, limit) {
        it.reads++
        if (!it.reachable) throw new Error('connection refused')
        return {
          samples: ring.filter((s) => s.seq > afterSeq).slice(0, limit),
          newestSeq: ring.at(-1)?.seq ?? null,
        }
      },
    } satisfies FeedSource,
  }
  return it
}

const open: { close(): void }[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const o of open.splice(0)) o.close()
})

function begin(
  instances: { instanceId: InstanceId; afterSeq: number | null }[],
  sources: Map<InstanceId, ReturnType<typeof source>>,
  stored: (instanceId: string, afterSeq: number, limit: number) => Promise<Sample[]> = async () => [],
) {
  const feeds = new Feeds((id) => (sources.get(id) as ReturnType<typeof source>).feed)
  const stop = new AbortController()
  open.push({
    close: () => {
      stop.abort()
      feeds.close()
    },
  })
  const events = follow({ feeds, stored }, instances, stop.signal)
  const seen: { instanceId: InstanceId; seq: number }[] = []
  const all: FollowEvent[] = []
  let positions: (number | null)[] = []
  return {
    feeds,
    stop,
    seen,
    all,
    positions: () => positions,
    seqs: (id: InstanceId) => seen.filter((s) => s.instanceId === id).map((s) => s.seq),
    /** Pulls events until the condition holds. */
    async until(condition: () => boolean) {
      while (!condition()) {
        const { value, done } = await events.next()
        if (done || !value) throw new Error('the stream ended')
        positions = value.positions
        all.push(value.event)
        if (value.event.type === 'samples')
          for (const { instanceId, sample } of value.event.samples) seen.push({ instanceId, seq: sample.seq })
      }
    },
    end: () => events.return(undefined),
  }
}
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

test('a reader gets what it missed and then each new sample, without gap or duplicate', async () => {
  const agent = source()
  agent.add(500)
  const reader = begin([{ instanceId: a, afterSeq: 100 }], new Map([[a, agent]]))
  await reader.until(() => reader.seqs(a).at(-1) === 500)
  agent.add(505)
  await reader.until(() => reader.seqs(a).at(-1) === 505)
  expect(reader.seqs(a)).toEqual(numbers(101, 505))
})

test('the stream to the agent breaks and comes back: no gap, no duplicate', async () => {
  const agent = source()
  agent.add(10)
  const reader = begin([{ instanceId: a, afterSeq: 5 }], new Map([[a, agent]]))
  await reader.until(() => reader.seqs(a).at(-1) === 10)
  agent.reachable = false
  agent.breakStreams()
  agent.add(50)
  agent.reachable = true
  await reader.until(() => reader.seqs(a).at(-1) === 50)
  expect(reader.seqs(a)).toEqual(numbers(6, 50))
})

test('a reader that pauses for longer than a feed remembers misses nothing', async () => {
  const agent = source()
  agent.add(1)
  const reader = begin([{ instanceId: a, afterSeq: 0 }], new Map([[a, agent]]))
  await reader.until(() => reader.seqs(a).at(-1) === 1)
  agent.add(1 + FEED_KEEPS * 3)
  await reader.until(() => reader.seqs(a).at(-1) === 1 + FEED_KEEPS * 3)
  expect(reader.seqs(a)).toEqual(numbers(1, 1 + FEED_KEEPS * 3))
})

test('what the agent’s ring does not hold any more comes from what is stored', async () => {
  const agent = source()
  agent.add(300, 200)
  const stored = async (_: string, afterSeq: number, limit: number) =>
    numbers(1, 250)
      .filter((n) => n > afterSeq)
      .slice(0, limit)
      .map(sampleOf)
  const reader = begin([{ instanceId: a, afterSeq: 120 }], new Map([[a, agent]]), stored)
  await reader.until(() => reader.seqs(a).at(-1) === 300)
  expect(reader.seqs(a)).toEqual(numbers(121, 300))
})

test('while the agent does not answer, what is stored is sent; the rest follows when it is back', async () => {
  const agent = source()
  agent.add(40)
  agent.reachable = false
  const stored = async (_: string, afterSeq: number) =>
    numbers(1, 30)
      .filter((n) => n > afterSeq)
      .map(sampleOf)
  const reader = begin([{ instanceId: a, afterSeq: 20 }], new Map([[a, agent]]), stored)
  await reader.until(() => reader.seqs(a).at(-1) === 30)
  agent.reachable = true
  await reader.until(() => reader.seqs(a).at(-1) === 40)
  expect(reader.seqs(a)).toEqual(numbers(21, 40))
})

test('positions of one stream resume another one exactly there, for several instances', async () => {
  const agents = new Map([
    [a, source()],
    [b, source()],
  ])
  agents.get(a)?.add(20)
  agents.get(b)?.add(7)
  const both = (pa: number | null, pb: number | null) => [
    { instanceId: a, afterSeq: pa },
    { instanceId: b, afterSeq: pb },
  ]
  const first = begin(both(0, 0), agents)
  await first.until(() => first.seqs(a).at(-1) === 20 && first.seqs(b).at(-1) === 7)
  const [pa, pb] = first.positions()
  await first.end()
  agents.get(a)?.add(25)
  agents.get(b)?.add(9)
  const second = begin(both(pa ?? null, pb ?? null), agents)
  await second.until(() => second.seqs(a).at(-1) === 25 && second.seqs(b).at(-1) === 9)
  expect([...first.seqs(a), ...second.seqs(a)]).toEqual(numbers(1, 25))
  expect([...first.seqs(b), ...second.seqs(b)]).toEqual(numbers(1, 9))
})

test('without a position a reader begins with the newest sample', async () => {
  const agent = source()
  agent.add(99)
  const reader = begin([{ instanceId: a, afterSeq: null }], new Map([[a, agent]]))
  await reader.until(() => reader.seen.length > 0)
  expect(reader.seqs(a)).toEqual([99])
})

test('who missed more than an hour is told to read the history again, and goes on from there', async () => {
  const agent = source()
  agent.add(RESUME_MAX + 50)
  const reader = begin([{ instanceId: a, afterSeq: 10 }], new Map([[a, agent]]))
  await reader.until(() => reader.all.length > 0)
  expect(reader.all[0]).toEqual({ type: 'reset', instanceId: a, newestSeq: RESUME_MAX + 50 })
  agent.add(RESUME_MAX + 52)
  await reader.until(() => reader.seen.length === 2)
  expect(reader.seqs(a)).toEqual([RESUME_MAX + 51, RESUME_MAX + 52])
})

test('an agent that lost its files and numbers anew resets its readers instead of leaving them waiting', async () => {
  const agent = source()
  agent.add(1_000)
  const reader = begin([{ instanceId: a, afterSeq: 998 }], new Map([[a, agent]]))
  await reader.until(() => reader.seqs(a).at(-1) === 1_000)
  agent.ring.length = 0
  for (const on of agent.streams) on.sample({ ...sampleOf(1), at: 2_000_000 })
  await reader.until(() => reader.all.some((e) => e.type === 'reset'))
  for (const on of agent.streams) on.sample({ ...sampleOf(2), at: 2_001_000 })
  await reader.until(() => reader.seqs(a).at(-1) === 2)
})

test('however many readers, the agent has one stream, and it is closed after the last one', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const agent = source()
  agent.add(3)
  const feeds = new Feeds(() => agent.feed)
  const held = [feeds.acquire(a), feeds.acquire(a), feeds.acquire(a)]
  expect(agent.opens).toBe(1)
  for (const h of held) h.release()
  expect(agent.streams.size).toBe(1)
  vi.advanceTimersByTime(6_000)
  expect(agent.streams.size).toBe(0)
  expect(feeds.size).toBe(0)
})

test('a reader that goes away lets go of its feed', async () => {
  const agent = source()
  agent.add(3)
  const reader = begin([{ instanceId: a, afterSeq: 0 }], new Map([[a, agent]]))
  await reader.until(() => reader.seqs(a).length === 3)
  const waiting = reader.until(() => false).catch((error: Error) => error.message)
  reader.stop.abort()
  expect(await waiting).toBe('the stream ended')
})
