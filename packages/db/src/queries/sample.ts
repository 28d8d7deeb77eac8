import { encodeValues, type MetricName, metricPosition, type Sample } from '@floe/telemetry'
import type pg from 'pg'
import { inTransaction, type Queryable, sqlError } from '../database'
import { ensurePartition, readRetention } from './sample-partition'

export type InstanceSamples = { instanceId: string; samples: readonly Sample[] }

/** Samples dated further ahead than this are refused: a clock gone wrong must not spread partitions over the future. */
export const SAMPLE_AHEAD_MS = 24 * 3_600_000
const ROWS_PER_INSERT = 2_000

export type StoredSamples = {
  /** Rows that were new. */
  stored: number
  /** Samples older than they are kept or too far ahead of `now`; they are not stored. */
  refused: number
}

/**
 * Stores samples of any number of instances; those already stored stay as they are, so a batch may be sent again. Marks
 * roll-ups of late samples to be done again, and makes the partition of an unforeseen time.
 */
export async function insertSamples(
  pool: pg.Pool,
  batches: readonly InstanceSamples[],
  now: number = Date.now(),
): Promise<StoredSamples> {
  const retention = (await readRetention(pool)).find((r) => r.stepSeconds === 1)
  if (!retention) throw new Error('no retention for samples')
  const keepFrom = now - retention.keepSeconds * 1_000
  let refused = 0
  const kept = batches
    .map(({ instanceId, samples }) => {
      const fit = samples.filter((s) => s.at >= keepFrom && s.at <= now + SAMPLE_AHEAD_MS)
      refused += samples.length - fit.length
      return { instanceId, samples: fit }
    })
    .filter((batch) => batch.samples.length > 0)
    // one order for all writers, so that two of them cannot wait for each other
    .sort((a, b) => a.instanceId.localeCompare(b.instanceId))
  if (kept.length === 0) return { stored: 0, refused }
  const rows = kept.flatMap(({ instanceId, samples }) => samples.map((sample) => ({ instanceId, sample })))
  let stored = 0
  for (let i = 0; i < rows.length; i += ROWS_PER_INSERT) {
    const part = rows.slice(i, i + ROWS_PER_INSERT)
    const write = () =>
      inTransaction(pool, async (tx) => {
        const n = await insertRows(tx, part)
        await advanceCursors(tx, part)
        return n
      })
    try {
      stored += await write()
    } catch (error) {
      // "no partition of relation found for row"
      if (sqlError(error)?.code !== '23514') throw error
      const length = retention.partitionSeconds * 1_000
      const slots = new Set(part.map((row) => Math.floor(row.sample.at / length) * length))
      for (const slot of slots) await ensurePartition(pool, retention, slot)
      for (const row of part) await ensurePartition(pool, retention, row.sample.at)
      stored += await write()
    }
  }
  return { stored, refused }
}

type Row = { instanceId: string; sample: Sample }

async function insertRows(on: Queryable, rows: readonly Row[]): Promise<number> {
  const { rowCount } = await on.query(
    `INSERT INTO telemetry.sample (instance_id, seq, at, interval_ms, "values")
     SELECT instance_id, seq, to_timestamp(at / 1000), interval_ms, "values"::float8[]
       FROM unnest($1::uuid[], $2::bigint[], $3::float8[], $4::float8[], $5::text[])
         AS s (instance_id, seq, at, interval_ms, "values")
     ON CONFLICT DO NOTHING`,
    [
      rows.map(({ instanceId }) => instanceId),
      rows.map(({ sample }) => sample.seq),
      rows.map(({ sample }) => sample.at),
      rows.map(({ sample }) => sample.intervalMs),
      rows.map(({ sample }) => numbersLiteral(encodeValues(sample.values))),
    ],
  )
  return rowCount ?? 0
}

/** Numbers as PostgreSQL reads an array of them; an array of arrays of different rows cannot be given otherwise. */
export function numbersLiteral(values: readonly (number | null)[]): string {
  let text = '{'
  for (let i = 0; i < values.length; i++) text += i === 0 ? (values[i] ?? 'NULL') : `,${values[i] ?? 'NULL'}`
  return `${text}}`
}

async function advanceCursors(on: Queryable, rows: readonly Row[]): Promise<void> {
  const cursors = new Map<string, { seq: number; at: number; oldest: number }>()
  for (const { instanceId, sample } of rows) {
    const c = cursors.get(instanceId) ?? { seq: sample.seq, at: sample.at, oldest: sample.at }
    if (sample.at >= c.at) Object.assign(c, { seq: sample.seq, at: sample.at })
    c.oldest = Math.min(c.oldest, sample.at)
    cursors.set(instanceId, c)
  }
  const moves = [...cursors].map(([instance_id, c]) => ({ instance_id, ...c }))
  // a late sample takes the roll-ups back to before it
  await on.query(
    `INSERT INTO telemetry.sample_cursor AS c (instance_id, newest_seq, newest_at, rolled_10s, rolled_1m)
     SELECT instance_id, seq, to_timestamp(at / 1000), to_timestamp(floor(oldest / 10000) * 10),
            to_timestamp(floor(oldest / 60000) * 60)
       FROM jsonb_to_recordset($1::jsonb) AS m (instance_id uuid, seq bigint, at float8, oldest float8)
      ORDER BY instance_id
     ON CONFLICT (instance_id) DO UPDATE SET
       newest_seq = CASE WHEN excluded.newest_at >= c.newest_at THEN excluded.newest_seq ELSE c.newest_seq END,
       newest_at = greatest(c.newest_at, excluded.newest_at),
       rolled_10s = least(c.rolled_10s, excluded.rolled_10s),
       rolled_1m = least(c.rolled_1m, excluded.rolled_1m)`,
    [JSON.stringify(moves)],
  )
}

/** Number of the newest sample stored of an instance, null when none ever was. History ends there; live starts after it. */
export async function newestSeq(on: Queryable, instanceId: string): Promise<number | null> {
  const { rows } = await on.query<{ seq: number }>(
    `SELECT newest_seq::float8 AS seq FROM telemetry.sample_cursor WHERE instance_id = $1`,
    [instanceId],
  )
  return rows[0]?.seq ?? null
}

/** A sample as stored; `decodeValues()` of packages/telemetry names its values. `at` in ms since the epoch. */
export type StoredSample = { seq: number; at: number; intervalMs: number; values: (number | null)[] }

const sampleColumns = `s.seq::float8, (extract(epoch FROM s.at) * 1000)::float8 AS at,
  s.interval_ms AS "intervalMs", s."values"`

/** The samples of an instance after a number, oldest first, as far as the 1 s resolution is kept. */
export async function readSamplesAfter(
  on: Queryable,
  input: { instanceId: string; afterSeq: number; limit?: number | undefined },
): Promise<StoredSample[]> {
  const { rows } = await on.query<StoredSample>(
    `SELECT ${sampleColumns} FROM telemetry.sample s WHERE instance_id = $1 AND seq > $2 ORDER BY s.seq LIMIT $3`,
    [input.instanceId, input.afterSeq, input.limit ?? 3_600],
  )
  return rows
}

/** The newest sample stored of each of these instances, without those that have none in the last hour. */
export async function newestSamples(
  on: Queryable,
  instanceIds: readonly string[],
): Promise<({ instanceId: string } & StoredSample)[]> {
  const { rows } = await on.query(
    `SELECT s.instance_id AS "instanceId", ${sampleColumns}
       FROM telemetry.sample_cursor c
       JOIN telemetry.sample s ON s.instance_id = c.instance_id AND s.seq = c.newest_seq AND s.at = c.newest_at
      WHERE c.instance_id = ANY ($1::uuid[]) AND s.at > now() - interval '1 hour'`,
    [instanceIds],
  )
  return rows
}

/**
 * The samples of a range (ms since the epoch, both ends included) in pages, oldest first, for an export of any size; only
 * as far back as the 1 s resolution is kept.
 */
export async function* streamSamples(
  on: Queryable,
  input: { instanceId: string; from: number; to: number; pageSize?: number | undefined },
): AsyncGenerator<StoredSample[]> {
  const pageSize = input.pageSize ?? 1_000
  let last = { at: input.from, seq: -1 }
  for (;;) {
    const { rows } = await on.query<StoredSample>(
      `SELECT ${sampleColumns} FROM telemetry.sample s
        WHERE instance_id = $1 AND at >= to_timestamp($2::float8 / 1000) AND at <= to_timestamp($3::float8 / 1000)
          AND (at > to_timestamp($2::float8 / 1000) OR seq > $4)
        ORDER BY s.at, s.seq LIMIT $5`,
      [input.instanceId, last.at, input.to, last.seq, pageSize],
    )
    if (rows.length > 0) yield rows
    const newest = rows.at(-1)
    if (!newest || rows.length < pageSize) return
    last = newest
  }
}

export type Sparkline = { instanceId: string; points: { at: number; value: number | null }[] }

/** The last `seconds` (default 60) of one metric for several instances in one query, oldest point first. */
export async function readSparklines(
  on: Queryable,
  input: { instanceIds: readonly string[]; metric?: MetricName | undefined; seconds?: number | undefined },
): Promise<Sparkline[]> {
  const { rows } = await on.query<{ instance_id: string; at: number[]; value: (number | null)[] }>(
    `SELECT instance_id, array_agg((extract(epoch FROM at) * 1000)::float8 ORDER BY at) AS at,
            array_agg("values"[$2] ORDER BY at) AS value
       FROM telemetry.sample
      WHERE instance_id = ANY ($1::uuid[]) AND at > now() - make_interval(secs => $3)
      GROUP BY instance_id`,
    [input.instanceIds, metricPosition(input.metric ?? 'tps') + 1, input.seconds ?? 60],
  )
  const found = new Map(rows.map((row) => [row.instance_id, row]))
  return input.instanceIds.map((instanceId) => {
    const row = found.get(instanceId)
    return { instanceId, points: row?.at.map((at, i) => ({ at, value: row.value[i] ?? null })) ?? [] }
  })
}
