import { expect, test } from 'vitest'
import { formatOpenMetrics } from '../metrics/open-metrics'
import type { Sampler } from '../sampler/sampler'
import { streamSamples } from './telemetry'

test('OpenMetrics text ends with EOF, counters end in _total, labels are escaped, unknown is absent', () => {
  const text = formatOpenMetrics([
    {
      name: 'pg_stat_database_xact_commit',
      type: 'counter',
      help: 'committed',
      points: [{ labels: { instance: 'a', datname: 'x"y' }, value: 7 }],
    },
    { name: 'nothing', type: 'gauge', help: 'unknown', points: [{ labels: {}, value: Number.NaN }] },
  ])
  expect(text).toBe(
    '# TYPE pg_stat_database_xact_commit counter\n# HELP pg_stat_database_xact_commit committed\npg_stat_database_xact_commit_total{instance="a",datname="x\\"y"} 7\n# EOF\n',
  )
})

/** A sampler whose ring is an array. */
function fakeSampler(count: number) {
  const samples = Array.from({ length: count }, (_, seq) => ({ seq, at: seq, intervalMs: 1, values: {} }))
  const listeners = new Set<(s: (typeof samples)[number]) => void>()
  return {
    take: () => {
      const sample = { seq: samples.length, at: samples.length, intervalMs: 1, values: {} }
      samples.push(sample)
      for (const l of listeners) l(sample)
    },
    listeners,
    sampler: {
      ring: {
        get newestSeq() {
          return samples.length - 1
        },
        read: (after: number, limit: number) => samples.slice(after + 1, after + 1 + limit),
      },
      subscribe: (l: (s: (typeof samples)[number]) => void) => {
        listeners.add(l)
        return () => listeners.delete(l)
      },
    } as unknown as Sampler,
  }
}

test('a stream from a number on joins history and live without gap or repetition', async () => {
  const { sampler, take } = fakeSampler(700)
  const seen: number[] = []
  for await (const s of streamSamples(sampler, 41, undefined)) {
    seen.push(s.seq)
    if (s.seq === 300) for (let i = 0; i < 100; i++) take()
    if (s.seq === 799) take()
    if (s.seq === 800) break
  }
  expect(seen).toEqual(Array.from({ length: 759 }, (_, i) => i + 42))
})

test('a reader that falls behind is served from the ring', async () => {
  const { sampler, take } = fakeSampler(1)
  const stream = streamSamples(sampler, 0, undefined)
  const first = stream.next()
  take()
  expect((await first).value?.seq).toBe(1)
  for (let i = 0; i < 500; i++) take()
  const seen: number[] = []
  while (seen.length < 500) seen.push((await stream.next()).value?.seq as number)
  expect(seen).toEqual(Array.from({ length: 500 }, (_, i) => i + 2))
  await stream.return(undefined)
})

test('a stream ends with its reader and leaves no listener', async () => {
  const { sampler, listeners } = fakeSampler(1)
  const abort = new AbortController()
  const stream = streamSamples(sampler, null, abort.signal)
  const waiting = stream.next()
  abort.abort()
  expect((await waiting).done).toBe(true)
  expect(listeners.size).toBe(0)
})
