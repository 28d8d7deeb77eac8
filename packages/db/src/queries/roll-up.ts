import { type EncodedSample, rollUp } from '@floe/telemetry'
import type pg from 'pg'
import { inTransaction, sqlError } from '../database'
import { numbersLiteral } from './sample'
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
/** Most samples of all instances together in one transaction, about 10 MB. */
const SAMPLES_AT_ONCE = 3_000

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
      const { rows } = await pool.query<Slice>(
        `SELECT instance_id, "from", least("to", "from" + $2) AS "to"
           FROM (SELECT instance_id, extract(epoch FROM ${rolled})::float8 AS "from",
                        (floor(extract(epoch FROM newest_at) / $1) * $1
                          + CASE WHEN newest_at < to_timestamp($3::float8 / 1000) THEN $1 ELSE 0 END)::float8 AS "to"
                   FROM telemetry.sample_cursor) c
          WHERE "from" < "to" ORDER BY instance_id LIMIT 200`,
        [stepSeconds, SLICE_SECONDS, now - ROLL_UP_IDLE_MS],
      )
      if (rows.length === 0) break
      for (const part of parts(rows)) {
        const write = () => rollUpPart(pool, { ...part, stepSeconds, table, rolled })
        try {
          buckets += await write()
        } catch (error) {
          // "no partition of relation found for row"
          if (sqlError(error)?.code !== '23514') throw error
          for (let at = part.from; at < part.to; at += stepSeconds)
            await ensurePartition(pool, kept, at * 1_000)
          buckets += await write()
        }
      }
    }
  }
  return buckets
}

type Slice = { instance_id: string; from: number; to: number }
/** Instances whose samples of the same time are rolled up together. */
type Part = { instanceIds: string[]; from: number; to: number }

/** Few transactions while all keep up, and none with more samples than a process holds easily while catching up. */
function parts(slices: readonly Slice[]): Part[] {
  const found: Part[] = []
  for (const { instance_id, from, to } of slices) {
    const most = Math.max(1, Math.floor(SAMPLES_AT_ONCE / (to - from)))
    const part = found.findLast((p) => p.from === from && p.to === to)
    if (part && part.instanceIds.length < most) part.instanceIds.push(instance_id)
    else found.push({ instanceIds: [instance_id], from, to })
  }
  return found
}

async function rollUpPart(
  pool: pg.Pool,
  part: Part & { stepSeconds: number; table: string; rolled: string },
): Promise<number> {
  return inTransaction(pool, async (tx) => {
    // the lock keeps a late sample from slipping in between reading and moving the mark
    const cursors = await tx.query<{ instance_id: string; from: number }>(
      `SELECT instance_id, extract(epoch FROM ${part.rolled})::float8 AS "from" FROM telemetry.sample_cursor
        WHERE instance_id = ANY ($1::uuid[]) ORDER BY instance_id FOR UPDATE`,
      [part.instanceIds],
    )
    const ids = cursors.rows.filter((c) => c.from === part.from).map((c) => c.instance_id)
    if (ids.length === 0) return 0
    const { rows } = await tx.query<EncodedSample & { instance_id: string }>(
      `SELECT instance_id, (extract(epoch FROM at) * 1000)::float8 AS at, interval_ms AS "intervalMs", "values"
         FROM telemetry.sample s
        WHERE instance_id = ANY ($1::uuid[]) AND at >= to_timestamp($2) AND at < to_timestamp($3)
        ORDER BY s.instance_id, s.at`,
      [ids, part.from, part.to],
    )
    const samples = Map.groupBy(rows, (row) => row.instance_id)
    const buckets = [...samples].flatMap(([instanceId, of]) =>
      rollUp(of, part.stepSeconds).map((bucket) => ({ instanceId, ...bucket })),
    )
    if (buckets.length > 0)
      await tx.query(
        `INSERT INTO telemetry.${part.table} (instance_id, bucket, covered_ms, average, maximum)
         SELECT instance_id, to_timestamp(bucket / 1000), covered_ms, average::real[], maximum::real[]
           FROM unnest($1::uuid[], $2::float8[], $3::float8[], $4::text[], $5::text[])
             AS b (instance_id, bucket, covered_ms, average, maximum)
         ON CONFLICT (instance_id, bucket) DO UPDATE
            SET covered_ms = excluded.covered_ms, average = excluded.average, maximum = excluded.maximum`,
        [
          buckets.map((b) => b.instanceId),
          buckets.map((b) => b.bucketAt),
          buckets.map((b) => b.coveredMs),
          buckets.map((b) => numbersLiteral(b.average)),
          buckets.map((b) => numbersLiteral(b.maximum)),
        ],
      )
    await tx.query(
      `UPDATE telemetry.sample_cursor SET ${part.rolled} = to_timestamp($2) WHERE instance_id = ANY ($1::uuid[])`,
      [ids, part.to],
    )
    return buckets.length
  })
}
