import { type MetricName, type MetricValues, metricPosition, metrics } from '@floe/telemetry'
import type { Queryable } from '../database'
import { type Retention, readRetention, type SampleStep, sampleTables } from './sample-partition'

export type HistoryInput = {
  instanceId: string
  /** Milliseconds since the epoch; `to` is included. */
  from: number
  to: number
  /** Most points per series, default 600. */
  maxPoints?: number | undefined
  /** Only these metrics; all when left out. */
  metrics?: readonly MetricName[] | undefined
  /** The answer of chooseResolution() for a longer range that this one is a part of; maxPoints is not looked at then. */
  resolution?: { stepSeconds: number; sourceSeconds: SampleStep } | undefined
}

export type HistoryPoint = {
  /** When the last sample in it was taken (1 s) or the bucket ended; ms since the epoch. */
  at: number
  /** Number of the sample where a point is one sample, else null. */
  seq: number | null
  /** How much time was measured for it, ms. */
  intervalMs: number
  /** True where nobody measured between the point before and this one: the line breaks here. */
  gapBefore: boolean
  /** Averages over the point's time, weighed by measured time. A metric that is absent is not known. */
  values: MetricValues
  /** Largest values in it; null where a point is a single sample. */
  maximum: MetricValues | null
}

export type History = {
  /** Seconds one point stands for. */
  stepSeconds: number
  /** The stored resolution it was read from; its newest part comes from the 1 s samples. */
  sourceSeconds: SampleStep
  points: HistoryPoint[]
  /** Number of the newest sample in it: live starts after it. Null when there is none. */
  newestSeq: number | null
}

const steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400]

/**
 * Which length of a point and which stored resolution answer a range: the shortest step that gives at most `maxPoints`,
 * from the coarsest table that divides it and still has the start of the range; else a coarser one.
 */
export function chooseResolution(
  range: { from: number; to: number; maxPoints: number; now: number },
  retention: readonly Retention[],
): { stepSeconds: number; sourceSeconds: SampleStep } {
  const seconds = Math.max(1, (range.to - range.from) / 1_000)
  const wanted =
    steps.find((step) => seconds / step <= range.maxPoints) ?? Math.ceil(seconds / range.maxPoints)
  const covers = (source: SampleStep) => {
    const kept = retention.find((r) => r.stepSeconds === source)
    return kept !== undefined && range.now - range.from <= kept.keepSeconds * 1_000
  }
  const fromCoarse = [...sampleTables].reverse()
  const fitting = fromCoarse.find(
    (t) => t.stepSeconds <= wanted && wanted % t.stepSeconds === 0 && covers(t.stepSeconds),
  )
  if (fitting) return { stepSeconds: wanted, sourceSeconds: fitting.stepSeconds }
  // too old for the fine tables: the finest that still has it, at least one of its own buckets a point
  const source = sampleTables.find((t) => covers(t.stepSeconds))?.stepSeconds ?? 60
  return { stepSeconds: Math.max(source, Math.ceil(wanted / source) * source), sourceSeconds: source }
}

type PointRow = {
  at: number
  first: number
  covered: number
  seq: number | null
  average: (number | null)[]
  maximum: (number | null)[]
}

/**
 * Samples of an instance over a range with at most `maxPoints` points, oldest first. Where the roll-up is not there yet
 * (the newest seconds) the 1 s samples fill in; where nobody measured there is no point and the next says `gapBefore`.
 */
export async function readSamples(on: Queryable, input: HistoryInput): Promise<History> {
  const names = input.metrics ?? metrics.map((m) => m.name)
  const retention = await readRetention(on)
  const range = { from: input.from, to: input.to, maxPoints: input.maxPoints ?? 600 }
  const { stepSeconds, sourceSeconds } =
    input.resolution ?? chooseResolution({ ...range, now: Date.now() }, retention)
  const rows =
    stepSeconds === 1
      ? await readSingle(on, input, names)
      : await readBuckets(on, input, names, stepSeconds, sourceSeconds)
  const points: HistoryPoint[] = []
  let before: PointRow | undefined
  for (const row of rows) {
    points.push({
      at: row.at,
      seq: stepSeconds === 1 ? row.seq : null,
      intervalMs: row.covered,
      gapBefore: before !== undefined && isHole(before, row, stepSeconds, sourceSeconds),
      values: named(names, row.average),
      maximum: stepSeconds === 1 ? null : named(names, row.maximum),
    })
    before = row
  }
  const newest = rows.reduce<number | null>((seq, row) => row.seq ?? seq, null)
  return { stepSeconds, sourceSeconds, points, newestSeq: newest ?? (await newestSeqUpTo(on, input)) }
}

/** Where everything in the range is rolled up, numbers are no longer in the rows. */
async function newestSeqUpTo(on: Queryable, input: HistoryInput): Promise<number | null> {
  const { rows } = await on.query<{ seq: number }>(
    `SELECT newest_seq::float8 AS seq FROM telemetry.sample_cursor
      WHERE instance_id = $1 AND newest_at <= to_timestamp($2::float8 / 1000)`,
    [input.instanceId, input.to],
  )
  return rows[0]?.seq ?? null
}

/**
 * `first` is where the measured time of a point begins. A hole of up to 10 s that the next sample's counters bridge is
 * drawn through; so is one shorter than a tick and a half.
 */
function isHole(a: PointRow, b: PointRow, stepSeconds: number, sourceSeconds: number): boolean {
  if (b.first - a.at > Math.max(1_500, sourceSeconds === 1 ? 0 : sourceSeconds * 500)) return true
  return b.at - a.at > Math.max(10_000, stepSeconds * 2_000)
}

function named(names: readonly MetricName[], values: readonly (number | null)[]): MetricValues {
  const out: MetricValues = {}
  names.forEach((name, i) => {
    const value = values[i]
    if (value !== null && value !== undefined) out[name] = value
  })
  return out
}

const picked = (array: string, names: readonly MetricName[]) =>
  `ARRAY[${names.map((name) => `${array}[${metricPosition(name) + 1}]`).join(', ')}]::float8[]`

async function readSingle(
  on: Queryable,
  input: HistoryInput,
  names: readonly MetricName[],
): Promise<PointRow[]> {
  const { rows } = await on.query<PointRow>(
    `SELECT (extract(epoch FROM at) * 1000)::float8 AS at,
            (extract(epoch FROM at) * 1000)::float8 - interval_ms AS first, interval_ms AS covered, seq::float8,
            ${picked('"values"', names)} AS average, NULL AS maximum
       FROM telemetry.sample s
      WHERE instance_id = $1 AND at >= to_timestamp($2::float8 / 1000) AND at <= to_timestamp($3::float8 / 1000)
      ORDER BY s.at`,
    [input.instanceId, input.from, input.to],
  )
  return rows
}

async function readBuckets(
  on: Queryable,
  input: HistoryInput,
  names: readonly MetricName[],
  stepSeconds: number,
  sourceSeconds: SampleStep,
): Promise<PointRow[]> {
  const finest = `
    SELECT at, at - make_interval(secs => interval_ms / 1000) AS first, interval_ms AS covered, seq,
           ${picked('"values"', names)} AS average, ${picked('"values"', names)} AS maximum
      FROM telemetry.sample
     WHERE instance_id = $1 AND at <= to_timestamp($3::float8 / 1000)`
  const rolled = sourceSeconds === 10 ? 'rolled_10s' : 'rolled_1m'
  // up to the mark from the roll-up, after it from the samples: no second is read twice or left out
  const rows =
    sourceSeconds === 1
      ? `${finest} AND at >= to_timestamp($2::float8 / 1000)`
      : `SELECT r.bucket + make_interval(secs => ${sourceSeconds}) AS at, r.bucket AS first, r.covered_ms AS covered,
                NULL::bigint AS seq, ${picked('average', names)} AS average, ${picked('maximum', names)} AS maximum
           FROM telemetry.${sourceSeconds === 10 ? 'sample_10s' : 'sample_1m'} r
          WHERE r.instance_id = $1 AND r.bucket >= to_timestamp($2::float8 / 1000)
            AND r.bucket + make_interval(secs => ${sourceSeconds}) <= to_timestamp($3::float8 / 1000)
            AND r.bucket < (SELECT ${rolled} FROM telemetry.sample_cursor WHERE instance_id = $1)
         UNION ALL
         ${finest} AND at >= greatest(to_timestamp($2::float8 / 1000),
           (SELECT ${rolled} FROM telemetry.sample_cursor WHERE instance_id = $1))`
  const each = (name: string, i: number) => `
    sum(average[${i + 1}] * covered) / nullif(sum(covered) FILTER (WHERE average[${i + 1}] IS NOT NULL), 0) AS "a_${name}",
    max(maximum[${i + 1}]) AS "m_${name}"`
  const bucketOf =
    sourceSeconds === 1
      ? `floor(extract(epoch FROM at) / ${stepSeconds})`
      : `floor(extract(epoch FROM CASE WHEN seq IS NULL THEN first ELSE at END) / ${stepSeconds})`
  const { rows: found } = await on.query<Record<string, number | null>>(
    `SELECT (extract(epoch FROM max(at)) * 1000)::float8 AS at, (extract(epoch FROM min(first)) * 1000)::float8 AS first,
            least(sum(covered), ${stepSeconds * 1_000}) AS covered, max(seq)::float8 AS seq, ${names.map(each).join(', ')}
       FROM (${rows}) s GROUP BY ${bucketOf} ORDER BY max(s.at)`,
    [input.instanceId, input.from, input.to],
  )
  return found.map((row) => ({
    at: row.at as number,
    first: row.first as number,
    covered: row.covered as number,
    seq: row.seq ?? null,
    average: names.map((name) => row[`a_${name}`] ?? null),
    maximum: names.map((name) => row[`m_${name}`] ?? null),
  }))
}
