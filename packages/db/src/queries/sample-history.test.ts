import { randomUUID } from 'node:crypto'
import { chooseResolution, encodeValues, rollUp, type Sample } from '@floe/telemetry'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../testing/control-database'
import { rollUpSamples } from './roll-up'
import { insertSamples } from './sample'
import { readSamples } from './sample-history'
import { maintainPartitions, readRetention } from './sample-partition'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
  await maintainPartitions(db.pool)
})
afterAll(() => db.drop())

const tick = (seq: number, at: number, tps: number): Sample => ({
  seq,
  at,
  intervalMs: 1_000,
  values: { tps },
})

test('a range is answered with as many points as fit, from the finest stored resolution that still has it', async () => {
  const retention = await readRetention(db.pool)
  const now = Date.now()
  const choose = (minutes: number, agoMinutes = minutes) =>
    chooseResolution(
      { from: now - agoMinutes * 60_000, to: now - (agoMinutes - minutes) * 60_000, maxPoints: 600, now },
      retention,
    )
  expect(choose(5)).toEqual({ stepSeconds: 1, sourceSeconds: 1 })
  expect(choose(15)).toEqual({ stepSeconds: 2, sourceSeconds: 1 })
  expect(choose(60)).toEqual({ stepSeconds: 10, sourceSeconds: 10 })
  expect(choose(6 * 60)).toEqual({ stepSeconds: 60, sourceSeconds: 60 })
  expect(choose(7 * 1_440)).toEqual({ stepSeconds: 1_800, sourceSeconds: 60 })
  expect(choose(90 * 1_440)).toEqual({ stepSeconds: 21_600, sourceSeconds: 60 })
  // ten minutes of yesterday are no longer kept by the second, of last month not by 10 s either
  expect(choose(10, 1_440)).toEqual({ stepSeconds: 10, sourceSeconds: 10 })
  expect(choose(10, 30 * 1_440)).toEqual({ stepSeconds: 60, sourceSeconds: 60 })
})

test('no second is counted twice or left out where roll-ups end and samples begin', async () => {
  const instanceId = randomUUID()
  const from = Math.floor(Date.now() / 60_000) * 60_000 - 3_600_000 + 60_000
  const samples = Array.from({ length: 3_500 }, (_, i) => tick(i, from + i * 1_000, i))
  await insertSamples(db.pool, [{ instanceId, samples: samples.slice(0, 3_000) }])
  await rollUpSamples(db.pool)
  // these are not rolled up yet
  await insertSamples(db.pool, [{ instanceId, samples: samples.slice(3_000) }])
  for (const maxPoints of [600, 350, 60, 10]) {
    const history = await readSamples(db.pool, {
      instanceId,
      from,
      to: from + 3_600_000,
      maxPoints,
      metrics: ['tps'],
      maximumOf: ['tps'],
    })
    expect(history.points.length).toBeLessThanOrEqual(maxPoints + 1)
    const measured = history.points.reduce((sum, p) => sum + p.intervalMs, 0)
    expect(measured).toBe(3_500_000)
    const total = history.points.reduce(
      (sum, p) => sum + (p.average[0] as number) * (p.intervalMs / 1_000),
      0,
    )
    expect(total).toBeCloseTo((3_499 * 3_500) / 2, -2)
    expect(history.points.some((p) => p.gapBefore)).toBe(false)
    expect(history.newestSeq).toBe(3_499)
    expect(history.points.at(-1)?.maximum).toEqual([3_499])
  }
})

test('points are the roll-up of the samples in them: the database averages as rollUp() does', async () => {
  const instanceId = randomUUID()
  const from = Math.floor(Date.now() / 60_000) * 60_000 - 240_000
  const samples = Array.from({ length: 23 }, (_, i) => ({
    ...tick(i, from + i * 1_300, i % 7 === 3 ? Number.NaN : (i * 37) % 11),
    intervalMs: 1_300,
  }))
  await insertSamples(db.pool, [{ instanceId, samples }])
  const { points, stepSeconds } = await readSamples(db.pool, {
    instanceId,
    from,
    to: from + 60_000,
    maxPoints: 12,
    metrics: ['tps', 'wal_bytes'],
    maximumOf: ['tps'],
  })
  expect(stepSeconds).toBe(5)
  const encoded = samples.map((s) => ({ ...s, values: encodeValues(s.values) }))
  const expected = rollUp(encoded, 5)
  expect(points.map((p) => p.intervalMs)).toEqual(expected.map((b) => b.coveredMs))
  expect(points.map((p) => p.maximum)).toEqual(expected.map((b) => [b.maximum[0]]))
  for (const [i, { average }] of points.entries()) {
    expect(average[0]).toBeCloseTo(expected[i]?.average[0] as number, 5)
    expect(average[1]).toBeNull()
  }
})

test('where nobody measured there is no point and the next one says so; a bridged missed tick is no gap', async () => {
  const instanceId = randomUUID()
  const from = Math.floor(Date.now() / 60_000) * 60_000 - 240_000
  const samples = [
    tick(1, from, 1),
    tick(2, from + 1_000, 1),
    // one missed tick: the next sample covers both seconds
    { ...tick(3, from + 3_000, 1), intervalMs: 2_000 },
    // half a minute without an agent: the counters bridge it, the chart does not
    { ...tick(4, from + 33_000, 1), intervalMs: 30_000 },
    // and one that does not even know what came before
    tick(5, from + 40_000, 1),
  ]
  await insertSamples(db.pool, [{ instanceId, samples }])
  const fine = await readSamples(db.pool, { instanceId, from, to: from + 60_000 })
  expect(fine.stepSeconds).toBe(1)
  expect(fine.points.map((p) => p.gapBefore)).toEqual([false, false, false, true, true])
  expect(fine.points.map((p) => p.seq)).toEqual([1, 2, 3, 4, 5])
  const coarse = await readSamples(db.pool, { instanceId, from, to: from + 60_000, maxPoints: 12 })
  expect(coarse.stepSeconds).toBe(5)
  expect(coarse.points.map((p) => p.gapBefore)).toEqual([false, true, true])
})

test('a metric nobody knew is null, never 0', async () => {
  const instanceId = randomUUID()
  const from = Math.floor(Date.now() / 10_000) * 10_000 - 120_000
  const samples = [tick(1, from, 5), { ...tick(2, from + 1_000, 5), values: { tps: null, wal_bytes: 7 } }]
  await insertSamples(db.pool, [{ instanceId, samples }])
  const { points } = await readSamples(db.pool, {
    instanceId,
    from,
    to: from + 5_000,
    metrics: ['tps', 'wal_bytes'],
  })
  expect(points.map((p) => p.average)).toEqual([
    [5, null],
    [null, 7],
  ])
  const coarse = await readSamples(db.pool, {
    instanceId,
    from,
    to: from + 5_000,
    maxPoints: 1,
    metrics: ['tps', 'locks_waiting'],
  })
  expect(coarse.points.map((p) => p.average)).toEqual([[5, null]])
})

test('a range without samples is an empty history, not an error', async () => {
  const history = await readSamples(db.pool, {
    instanceId: randomUUID(),
    from: Date.now() - 60_000,
    to: Date.now(),
  })
  expect(history).toMatchObject({ points: [], newestSeq: null })
})
