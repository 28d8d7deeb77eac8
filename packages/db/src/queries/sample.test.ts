import { randomUUID } from 'node:crypto'
import { decodeValues, metrics, rollUp, type Sample } from '@floe/telemetry'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../testing/control-database'
import { rollUpSamples } from './roll-up'
import {
  insertSamples,
  newestSamples,
  newestSeq,
  readSamplesAfter,
  readSparklines,
  streamSamples,
} from './sample'
import { listPartitions, maintainPartitions, setRetention } from './sample-partition'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
  await maintainPartitions(db.as.controller.pool)
})
afterAll(() => db.drop())

/** Deterministic samples of one a second from `from` (ms), leaving out those for which `skip` says so. */
function samplesFrom(from: number, count: number, skip: (i: number) => boolean = () => false): Sample[] {
  const out: Sample[] = []
  let last = from - 1_000
  for (let i = 0; i < count; i++) {
    if (skip(i)) continue
    const at = from + i * 1_000 + ((i * 37) % 90)
    out.push({
      seq: i,
      at,
      intervalMs: at - last,
      values: {
        tps: 1_000 + 300 * Math.sin(i / 17),
        wal_bytes: (i * 7_919) % 100_003,
        ...(i % 3 === 0 ? { database_size: 5e9 + i } : {}),
        replication_lag: i % 5 === 0 ? null : i / 10,
      },
    })
    last = at
  }
  return out
}
const minutesAgo = (n: number) => Math.floor(Date.now() / 60_000) * 60_000 - n * 60_000
const count = async (instanceId: string) =>
  Number(
    (await db.pool.query('SELECT count(*) FROM telemetry.sample WHERE instance_id = $1', [instanceId]))
      .rows[0].count,
  )

test('a batch that is sent again is stored once, with every value as it was measured', async () => {
  const instanceId = randomUUID()
  const samples = samplesFrom(minutesAgo(5), 100)
  expect(await insertSamples(db.pool, [{ instanceId, samples }])).toEqual({ stored: 100, refused: 0 })
  expect(await insertSamples(db.pool, [{ instanceId, samples }])).toEqual({ stored: 0, refused: 0 })
  expect(await newestSeq(db.pool, instanceId)).toBe(99)
  const read = await readSamplesAfter(db.pool, { instanceId, afterSeq: 49 })
  expect(read.map((s) => s.seq)).toEqual(samples.slice(50).map((s) => s.seq))
  const first = samples[50] as Sample
  expect(read[0]).toMatchObject({ at: first.at, intervalMs: first.intervalMs })
  expect(decodeValues(read[0]?.values ?? [])).toEqual(
    Object.fromEntries(Object.entries(first.values).filter(([, value]) => value !== null)),
  )
  expect(read[0]?.values).toHaveLength(metrics.length)
})

test('twenty writers of overlapping batches of the same instances lose nothing and store nothing twice', async () => {
  const ids = Array.from({ length: 6 }, () => randomUUID())
  const samples = samplesFrom(minutesAgo(10), 200)
  await Promise.all(
    Array.from({ length: 20 }, (_, n) => {
      const order = n % 2 === 0 ? ids : [...ids].reverse()
      return insertSamples(
        db.pool,
        order.map((instanceId) => ({ instanceId, samples: samples.slice(n * 5, n * 5 + 105) })),
      )
    }),
  )
  for (const id of ids) {
    expect(await count(id)).toBe(200)
    expect(await newestSeq(db.pool, id)).toBe(199)
  }
})

test('a sample of an hour nobody foresaw is stored; one older than it is kept or a day ahead is refused', async () => {
  const instanceId = randomUUID()
  const at = (hours: number) => Date.now() + hours * 3_600_000
  const sample = (seq: number, hours: number): Sample => ({
    seq,
    at: at(hours),
    intervalMs: 1_000,
    values: { tps: 1 },
  })
  const answer = await insertSamples(db.pool, [
    { instanceId, samples: [sample(1, -7), sample(2, -5), sample(3, 9), sample(4, 25)] },
  ])
  expect(answer).toEqual({ stored: 2, refused: 2 })
  expect((await readSamplesAfter(db.pool, { instanceId, afterSeq: 0 })).map((s) => s.seq)).toEqual([2, 3])
})

test('stored roll-ups equal rollUp() over all samples, whatever the order and size of the batches', async () => {
  const instanceId = randomUUID()
  const samples = samplesFrom(minutesAgo(30), 1_500, (i) => i % 101 === 7 || (i > 600 && i < 640))
  const late = samples.filter((s) => s.seq >= 300 && s.seq < 420)
  const early = samples.filter((s) => s.seq < 300)
  const rest = samples.filter((s) => s.seq >= 420)
  await insertSamples(db.pool, [{ instanceId, samples: early }])
  await rollUpSamples(db.pool)
  await insertSamples(db.pool, [{ instanceId, samples: rest }])
  await rollUpSamples(db.pool)
  // comes after its buckets were rolled up without it
  await insertSamples(db.pool, [{ instanceId, samples: late }])
  await Promise.all([rollUpSamples(db.pool), rollUpSamples(db.pool)])
  const narrow = (values: (number | null)[]) => values.map((v) => (v === null ? null : Math.fround(v)))
  const encoded = await readSamplesAfter(db.pool, { instanceId, afterSeq: -1 })
  expect(encoded).toHaveLength(samples.length)
  for (const [table, stepSeconds] of [
    ['sample_10s', 10],
    ['sample_1m', 60],
  ] as const) {
    const { rows } = await db.pool.query(
      `SELECT (extract(epoch FROM bucket) * 1000)::float8 AS "bucketAt", covered_ms AS "coveredMs", average, maximum
         FROM telemetry.${table} WHERE instance_id = $1 ORDER BY bucket`,
      [instanceId],
    )
    const expected = rollUp(encoded, stepSeconds).map((b) => ({
      ...b,
      average: narrow(b.average),
      maximum: narrow(b.maximum),
    }))
    expect(rows.map((r) => ({ ...r, average: narrow(r.average), maximum: narrow(r.maximum) }))).toEqual(
      expected,
    )
  }
})

test('the last bucket of an instance that fell silent is rolled up, and one that is still filling is not', async () => {
  const silent = randomUUID()
  const live = randomUUID()
  await insertSamples(db.pool, [
    { instanceId: silent, samples: samplesFrom(minutesAgo(8), 25) },
    { instanceId: live, samples: samplesFrom(Math.floor(Date.now() / 10_000) * 10_000 - 10_000, 13) },
  ])
  await rollUpSamples(db.pool)
  const buckets = async (id: string) =>
    (await db.pool.query('SELECT covered_ms FROM telemetry.sample_10s WHERE instance_id = $1', [id])).rows
      .length
  expect(await buckets(silent)).toBe(3)
  expect(await buckets(live)).toBe(1)
})

test('partitions are made ahead and dropped once every row in them is too old, and only then', async () => {
  const hour = 3_600_000
  const now = Math.floor(Date.now() / hour) * hour
  for (const ago of [4, 3, 2, 1, 0]) await maintainPartitions(db.pool, now - ago * hour)
  expect((await maintainPartitions(db.pool, now)).created).toBe(0)
  const kept = await listPartitions(db.pool, 1)
  expect(kept.some((p) => p.from <= now && now < p.to)).toBe(true)
  expect(kept.some((p) => p.from <= now + hour && now + hour < p.to)).toBe(true)
  for (const p of kept) expect(p.to - p.from).toBe(hour)
  await setRetention(db.pool, 1, 2 * 3_600)
  const { dropped } = await maintainPartitions(db.pool, now)
  await setRetention(db.pool, 1, 6 * 3_600)
  const left = await listPartitions(db.pool, 1)
  const oldest = now - 2 * hour
  expect(dropped.length).toBeGreaterThan(0)
  expect(left.every((p) => p.to > oldest)).toBe(true)
  expect(kept.filter((p) => p.to > oldest).every((p) => left.some((l) => l.name === p.name))).toBe(true)
})

test('no partition is dropped that may still be read, and none is made of a senseless time', async () => {
  const { pool } = db.as.controller
  const [newest] = (await listPartitions(pool, 1)).slice(-1)
  await expect(pool.query('SELECT telemetry.drop_partition($1)', [newest?.name])).rejects.toThrow(
    'is not past its retention',
  )
  await expect(
    pool.query(`SELECT telemetry.make_partition(1, 'now', now() + interval '31 days')`),
  ).rejects.toThrow('invalid partition')
  await expect(
    pool.query(`SELECT telemetry.make_partition(5, 'now', now() + interval '1 hour')`),
  ).rejects.toThrow('invalid partition')
})

test('sparklines of many instances come from one query, with an empty line where nothing was measured', async () => {
  const [a, b] = [randomUUID(), randomUUID()]
  const now = Date.now()
  const samples = [3, 2, 1].map(
    (s, seq): Sample => ({ seq, at: now - s * 1_000, intervalMs: 1_000, values: { tps: seq } }),
  )
  await insertSamples(db.pool, [{ instanceId: a, samples }])
  const lines = await readSparklines(db.pool, { instanceIds: [a, b] })
  expect(lines).toEqual([
    { instanceId: a, points: samples.map((s) => ({ at: s.at, value: s.values.tps })) },
    { instanceId: b, points: [] },
  ])
  expect(await newestSamples(db.pool, [a, b])).toMatchObject([{ instanceId: a, seq: 2 }])
})

test('an export pages through a range without leaving out or repeating a sample', async () => {
  const instanceId = randomUUID()
  const samples = samplesFrom(minutesAgo(20), 500)
  await insertSamples(db.pool, [{ instanceId, samples }])
  const seen: number[] = []
  const range = { from: (samples[10] as Sample).at, to: (samples[489] as Sample).at }
  for await (const page of streamSamples(db.pool, { instanceId, ...range, pageSize: 7 }))
    seen.push(...page.map((s) => s.seq))
  expect(seen).toEqual(Array.from({ length: 480 }, (_, i) => i + 10))
})
