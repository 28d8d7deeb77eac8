import type pg from 'pg'
import type { Queryable } from '../database'

/**
 * Rows that grow with use, and from which moment their age counts: operations with their steps and log lines from their
 * end, incidents from their closing, sessions from their expiry, audit rows from the deed.
 */
export const recordKinds = ['operation', 'incident', 'session', 'audit'] as const
export type RecordKind = (typeof recordKinds)[number]

/** How long rows of each kind are kept, in seconds. */
export async function readRecordRetention(on: Queryable): Promise<Record<RecordKind, number>> {
  const { rows } = await on.query<{ kind: RecordKind; keepSeconds: number }>(
    'SELECT kind, "keepSeconds" FROM record_retention',
  )
  return Object.fromEntries(rows.map((r) => [r.kind, r.keepSeconds])) as Record<RecordKind, number>
}

/** Changes how long rows of a kind are kept, at least a day; what is too old then goes at the next maintenance. */
export async function setRecordRetention(
  on: Queryable,
  kind: RecordKind,
  keepSeconds: number,
): Promise<void> {
  await on.query('UPDATE record_retention SET "keepSeconds" = $2 WHERE kind = $1', [kind, keepSeconds])
}

/** Rows deleted by one statement, so that none holds locks for long. */
const BATCH = 2_000
const BATCHES_MAX = 50

/** Functions that delete portions of what is too old: nothing else may delete these rows. */
const prune: Record<RecordKind, string> = {
  operation: 'prune_operations',
  incident: 'prune_incidents',
  session: 'prune_sessions',
  audit: 'prune_audit_events',
}

/** Deletes what is older than it has to be kept, in small portions; answers how many rows of each kind. */
export async function pruneRecords(pool: pg.Pool): Promise<Record<RecordKind, number>> {
  const deleted = { operation: 0, incident: 0, session: 0, audit: 0 }
  for (const kind of recordKinds)
    for (let batch = 0; batch < BATCHES_MAX; batch++) {
      const { rows } = await pool.query<{ removed: number }>(`SELECT ${prune[kind]}($1) AS removed`, [BATCH])
      const removed = rows[0]?.removed ?? 0
      deleted[kind] += removed
      if (removed < BATCH) break
    }
  return deleted
}
