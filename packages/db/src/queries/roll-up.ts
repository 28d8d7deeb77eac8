import { rollUp } from '@floe/telemetry'
import type pg from 'pg'
import { inTransaction, sqlError } from '../database'
import { ensurePartition, readRetention } from './sample-partition'

const rollUps = [
  { stepSeconds: 10, table: 'sample_10s', rolled: 'rolled_10s' },
  { stepSeconds: 60, table: 'sample_1m', rolled: 'rolled_1m' },
] as const

/**
 * A bucket is rolled up once a later sample proves that it is complete, or when nothing came for this long: a stopped
 * instance's last bucket must not wait until the samples under it are dropped. A late sample does it again.
 */
export const ROLL_UP_IDLE_MS = 120_000
/** Most time rolled up at once per instance, so that catching up stays in small transactions. */
const SLICE_SECONDS = 600

/**
 * Rolls up every instance's samples as far as they are complete; answers how many buckets were written. `rollUp()` of
 * packages/telemetry does the arithmetic. Safe to run at the same time and after a crash at any point.
 */
export async function rollUpSamples(pool: pg.Pool, now: number = Date.now()): Promise<number> {
  const retention = await readRetention(pool)
  let buckets = 0
  for (const { stepSeconds, table, rolled } of rollUps) {
    const kept = retention.find((r) => r.stepSeconds === stepSeconds)
    if (!kept) continue
    for (;;) {
      const { rows } = await pool.query<{ instance_id: string; from: number; to: number }>(
        `SELECT instance_id, "from", least("to", "from" + $2) AS "to"
           FROM (SELECT instance_id, extract(epoch FROM ${rolled})::float8 AS "from",
                        (floor(extract(epoch FROM newest_at) / $1) * $1
                          + CASE WHEN newest_at < to_timestamp($3::float8 / 1000) THEN $1 ELSE 0 END)::float8 AS "to"
                   FROM telemetry.sample_cursor) c
          WHERE "from" < "to" ORDER BY instance_id LIMIT 200`,
        [stepSeconds, SLICE_SECONDS, now - ROLL_UP_IDLE_MS],
      )
      if (rows.length === 0) break
      for (const slice of rows) {
        const write = () => rollUpSlice(pool, { ...slice, stepSeconds, table, rolled })
        try {
          buckets += await write()
        } catch (error) {
          // "no partition of relation found for row"
          if (sqlError(error)?.code !== '23514') throw error
          for (let at = slice.from; at < slice.to; at += stepSeconds)
            await ensurePartition(pool, kept, at * 1_000)
          buckets += await write()
        }
      }
    }
  }
  return buckets
}

async function rollUpSlice(
  pool: pg.Pool,
  slice: {
    instance_id: string
    from: number
    to: number
    stepSeconds: number
    table: string
    rolled: string
  },
): Promise<number> {
  return inTransaction(pool, async (tx) => {
    // the lock keeps a late sample from slipping in between reading and moving the mark
    const cursor = await tx.query<{ from: number }>(
      `SELECT extract(epoch FROM ${slice.rolled})::float8 AS "from" FROM telemetry.sample_cursor
        WHERE instance_id = $1 FOR UPDATE`,
      [slice.instance_id],
    )
    if (cursor.rows[0]?.from !== slice.from) return 0
    const { rows } = await tx.query<{ at: number; intervalMs: number; values: (number | null)[] }>(
      `SELECT (extract(epoch FROM at) * 1000)::float8 AS at, interval_ms AS "intervalMs", "values"
         FROM telemetry.sample
        WHERE instance_id = $1 AND at >= to_timestamp($2) AND at < to_timestamp($3) ORDER BY at`,
      [slice.instance_id, slice.from, slice.to],
    )
    const buckets = rollUp(rows, slice.stepSeconds)
    if (buckets.length > 0) {
      const parameters: unknown[] = []
      const values = buckets.map((b) => {
        const n = parameters.length
        parameters.push(slice.instance_id, b.bucketAt, b.coveredMs, b.average, b.maximum)
        return `($${n + 1}::uuid, to_timestamp($${n + 2}::float8 / 1000), $${n + 3}::float8, $${n + 4}::real[], $${n + 5}::real[])`
      })
      await tx.query(
        `INSERT INTO telemetry.${slice.table} (instance_id, bucket, covered_ms, average, maximum) VALUES ${values.join(', ')}
         ON CONFLICT (instance_id, bucket) DO UPDATE
            SET covered_ms = excluded.covered_ms, average = excluded.average, maximum = excluded.maximum`,
        parameters,
      )
    }
    await tx.query(
      `UPDATE telemetry.sample_cursor SET ${slice.rolled} = to_timestamp($2) WHERE instance_id = $1`,
      [slice.instance_id, slice.to],
    )
    return buckets.length
  })
}
