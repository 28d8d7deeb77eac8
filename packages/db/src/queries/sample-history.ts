import {
  chooseResolution,
  joins,
  type MetricName,
  metricPosition,
  metrics,
  type Resolution,
} from '@floe/telemetry'
import type { Queryable } from '../database'
import { readRetention } from './sample-partition'

export type HistoryInput = {
  instanceId: string
  /** Milliseconds since the epoch; `to` is included. */
  from: number
  to: number
  /** Most points per series, default 600. */
  maxPoints?: number | undefined
  /** Only these metrics; all when left out. */
  metrics?: readonly MetricName[] | undefined
  /** Those of which the largest value in each point is read, too. */
  maximumOf?: readonly MetricName[] | undefined
  /** The answer of chooseResolution() for a longer range that this one is a part of; maxPoints is not looked at then. */
  resolution?: Resolution | undefined
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
  /** Averages over the point's time, weighed by measured time, in the order of `metrics`; null where it is not known. */
  average: (number | null)[]
  /** Largest values in it, in the order of `maximumOf`; null where a point is a single sample. */
  maximum: (number | null)[] | null
}

/** `sourceSeconds` is where it was read from; its newest part comes from the 1 s samples. */
export type History = Resolution & {
  points: HistoryPoint[]
  /** Number of the newest sample in it: live starts after it. Null when there is none. */
  newestSeq: number | null
}

type PointRow = {
  at: number
  /** Where its measured time begins. */
  from: number
  covered: number
  seq: number | null
  average: (number | null)[]
  maximum: (number | null)[] | null
}

/**
 * Samples of an instance over a range with at most `maxPoints` points, oldest first. Where the roll-up is not there yet
 * (the newest seconds) the 1 s samples fill in; where nobody measured there is no point and the next says `gapBefore`.
 */
export async function readSamples(on: Queryable, input: HistoryInput): Promise<History> {
  const names = input.metrics ?? metrics.map((m) => m.name)
  const retention = await readRetention(on)
  const range = { from: input.from, to: input.to, maxPoints: input.maxPoints ?? 600 }
  const resolution = input.resolution ?? chooseResolution({ ...range, now: Date.now() }, retention)
  const single = resolution.stepSeconds === 1
  const rows = single
    ? await readSingle(on, input, names)
    : await readBuckets(on, input, names, input.maximumOf ?? [], resolution)
  const points = rows.map((row, i): HistoryPoint => {
    const before = rows[i - 1]
    return {
      at: row.at,
      seq: single ? row.seq : null,
      intervalMs: row.covered,
      gapBefore: before !== undefined && !joins(before, row, resolution),
      average: row.average,
      maximum: row.maximum,
    }
  })
  const newest = rows.reduce<number | null>((seq, row) => row.seq ?? seq, null)
  return { ...resolution, points, newestSeq: newest ?? (await newestSeqUpTo(on, input)) }
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

const picked = (array: string, names: readonly MetricName[]) =>
  `ARRAY[${names.map((name) => `${array}[${metricPosition(name) + 1}]`).join(', ')}]::float8[]`

async function readSingle(
  on: Queryable,
  input: HistoryInput,
  names: readonly MetricName[],
): Promise<PointRow[]> {
  const { rows } = await on.query<PointRow>(
    `SELECT (extract(epoch FROM at) * 1000)::float8 AS at,
            (extract(epoch FROM at) * 1000)::float8 - interval_ms AS "from", interval_ms AS covered, seq::float8,
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
  maximumOf: readonly MetricName[],
  { stepSeconds, sourceSeconds }: Resolution,
): Promise<PointRow[]> {
  const finest = `
    SELECT at, at - make_interval(secs => interval_ms / 1000) AS first, interval_ms AS covered, seq,
           ${picked('"values"', names)} AS average, ${picked('"values"', maximumOf)} AS maximum
      FROM telemetry.sample
     WHERE instance_id = $1 AND at <= to_timestamp($3::float8 / 1000)`
  const rolled = sourceSeconds === 10 ? 'rolled_10s' : 'rolled_1m'
  // up to the mark from the roll-up, after it from the samples: no second is read twice or left out
  const rows =
    sourceSeconds === 1
      ? `${finest} AND at >= to_timestamp($2::float8 / 1000)`
      : `SELECT r.bucket + make_interval(secs => ${sourceSeconds}) AS at, r.bucket AS first, r.covered_ms AS covered,
                NULL::bigint AS seq, ${picked('average', names)} AS average, ${picked('maximum', maximumOf)} AS maximum
           FROM telemetry.${sourceSeconds === 10 ? 'sample_10s' : 'sample_1m'} r
          WHERE r.instance_id = $1 AND r.bucket >= to_timestamp($2::float8 / 1000)
            AND r.bucket + make_interval(secs => ${sourceSeconds}) <= to_timestamp($3::float8 / 1000)
            AND r.bucket < (SELECT ${rolled} FROM telemetry.sample_cursor WHERE instance_id = $1)
         UNION ALL
         ${finest} AND at >= greatest(to_timestamp($2::float8 / 1000),
           (SELECT ${rolled} FROM telemetry.sample_cursor WHERE instance_id = $1))`
  // as Weighing of packages/telemetry does it
  const averages = names.map(
    (_, i) =>
      `sum(average[${i + 1}] * covered) / nullif(sum(covered) FILTER (WHERE average[${i + 1}] IS NOT NULL), 0)`,
  )
  const maxima = maximumOf.map((_, i) => `max(maximum[${i + 1}])`)
  const bucketOf =
    sourceSeconds === 1
      ? `floor(extract(epoch FROM at) / ${stepSeconds})`
      : `floor(extract(epoch FROM CASE WHEN seq IS NULL THEN first ELSE at END) / ${stepSeconds})`
  const { rows: found } = await on.query<PointRow>(
    `SELECT (extract(epoch FROM max(at)) * 1000)::float8 AS at, (extract(epoch FROM min(first)) * 1000)::float8 AS "from",
            least(sum(covered), ${stepSeconds * 1_000}) AS covered, max(seq)::float8 AS seq,
            ARRAY[${averages.join(', ')}]::float8[] AS average, ARRAY[${maxima.join(', ')}]::float8[] AS maximum
       FROM (${rows}) s GROUP BY ${bucketOf} ORDER BY max(s.at)`,
    [input.instanceId, input.from, input.to],
  )
  return found
}
