import type { StoredStep } from '@floe/telemetry'
import type pg from 'pg'
import { inTransaction, type Queryable, sqlError } from '../database'

/** The stored resolutions: table and seconds of a bucket. */
export const sampleTables = [
  { stepSeconds: 1, table: 'sample' },
  { stepSeconds: 10, table: 'sample_10s' },
  { stepSeconds: 60, table: 'sample_1m' },
] as const satisfies readonly { stepSeconds: StoredStep; table: string }[]

export type Retention = { stepSeconds: StoredStep; keepSeconds: number; partitionSeconds: number }

/** How long each resolution is kept, finest first. */
export async function readRetention(on: Queryable): Promise<Retention[]> {
  const { rows } = await on.query<Retention>(
    `SELECT step_seconds AS "stepSeconds", keep_seconds AS "keepSeconds", partition_seconds AS "partitionSeconds"
       FROM telemetry.retention ORDER BY step_seconds`,
  )
  return rows
}

/** Changes how long a resolution is kept; what is too old then goes at the next maintenance. */
export async function setRetention(
  on: Queryable,
  stepSeconds: StoredStep,
  keepSeconds: number,
): Promise<void> {
  await on.query(`UPDATE telemetry.retention SET keep_seconds = $2 WHERE step_seconds = $1`, [
    stepSeconds,
    keepSeconds,
  ])
}

export type Partition = { name: string; from: number; to: number }

/** Partitions of a resolution with their bounds in ms since the epoch, oldest first. */
export async function listPartitions(on: Queryable, stepSeconds: StoredStep): Promise<Partition[]> {
  const table = sampleTables.find((t) => t.stepSeconds === stepSeconds)?.table as string
  // the catalogue prints bounds in the session's time zone and date style, so both are pinned for this read
  const { rows } = await on.query<{ name: string; lower: string; upper: string }>(
    `SELECT c.relname AS name,
            substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \\(''([^'']+)''\\)') AS lower,
            substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \\(''([^'']+)''\\)') AS upper
       FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = ('telemetry.' || $1::text)::regclass`,
    [table],
  )
  const moment = (text: string) => Date.parse(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'))
  return rows
    .map((row) => ({ name: row.name, from: moment(row.lower), to: moment(row.upper) }))
    .sort((a, b) => a.from - b.from)
}

/**
 * Makes the partition of a resolution that holds `at` (ms), aligned to its length, unless one covers it already. It is
 * attached, so that readers and writers of the other partitions are not held up.
 */
export async function ensurePartition(pool: pg.Pool, retention: Retention, at: number): Promise<boolean> {
  const length = retention.partitionSeconds * 1_000
  return inTransaction(pool, async (tx) => {
    await tx.query(`SET LOCAL lock_timeout = '5s'; SET LOCAL DateStyle = 'ISO'; SET LOCAL TimeZone = 'UTC'`)
    await tx.query(`SELECT pg_advisory_xact_lock(hashtext('telemetry partitions'))`)
    const existing = await listPartitions(tx, retention.stepSeconds)
    if (existing.some((p) => p.from <= at && at < p.to)) return false
    // a changed length may leave neighbours of another size: the new one fills the hole up to them
    let from = Math.floor(at / length) * length
    let to = from + length
    for (const p of existing) {
      if (p.to <= at && p.to > from) from = p.to
      if (p.from > at && p.from < to) to = p.from
    }
    await tx.query('SELECT telemetry.make_partition($1, $2, $3)', [
      retention.stepSeconds,
      new Date(from),
      new Date(to),
    ])
    return true
  })
}

/**
 * Makes the partitions for now and the next one ahead, and drops those whose every row is older than it has to be kept.
 * Rows are never deleted one by one. Answers how many were made, and the names dropped. Safe to run at the same time.
 */
export async function maintainPartitions(
  pool: pg.Pool,
  now: number = Date.now(),
): Promise<{ created: number; dropped: string[] }> {
  let created = 0
  const dropped: string[] = []
  for (const retention of await readRetention(pool)) {
    const length = retention.partitionSeconds * 1_000
    // one back: samples that were waiting in a ring when the first partition was made
    for (const at of [now - Math.min(length, 3_600_000), now, now + length])
      if (await ensurePartition(pool, retention, at)) created++
    const keepFrom = now - retention.keepSeconds * 1_000
    const partitions = await inTransaction(pool, async (tx) => {
      await tx.query(`SET LOCAL DateStyle = 'ISO'; SET LOCAL TimeZone = 'UTC'`)
      return listPartitions(tx, retention.stepSeconds)
    })
    for (const partition of partitions.filter((p) => p.to <= keepFrom))
      if (await dropPartition(pool, partition.name)) dropped.push(partition.name)
  }
  return { created, dropped }
}

/** False when it is gone already, or readers kept it busy: the next maintenance tries again. */
async function dropPartition(pool: pg.Pool, name: string): Promise<boolean> {
  try {
    return await inTransaction(pool, async (tx) => {
      await tx.query(`SET LOCAL lock_timeout = '2s'`)
      const { rows } = await tx.query<{ dropped: boolean }>(
        'SELECT telemetry.drop_partition($1) AS dropped',
        [name],
      )
      return rows[0]?.dropped ?? false
    })
  } catch (error) {
    if (sqlError(error)?.code === '55P03') return false
    throw error
  }
}
