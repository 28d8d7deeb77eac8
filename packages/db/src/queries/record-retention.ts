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

/** Which rows of a kind are too old; $1 is how long they are kept, $2 how many at once. */
const tooOld: Record<RecordKind, string> = {
  // that an instance was created is told from its operation; what is being taken up again is still read
  operation: `DELETE FROM operation WHERE id IN (
      SELECT o.id FROM operation o
       WHERE o."endedAt" < now() - make_interval(secs => $1)
         AND NOT (o.kind LIKE 'create-%' AND o.state = 'succeeded' AND EXISTS (
               SELECT 1 FROM instance i WHERE i.id = o."instanceId" AND i."deletedAt" IS NULL))
         AND NOT EXISTS (SELECT 1 FROM operation r WHERE r."retryOf" = o.id AND r."endedAt" IS NULL)
       ORDER BY o."endedAt" LIMIT $2)`,
  incident: `DELETE FROM incident WHERE id IN (
      SELECT id FROM incident WHERE "closedAt" < now() - make_interval(secs => $1) LIMIT $2)`,
  session: `DELETE FROM session WHERE id IN (
      SELECT id FROM session WHERE "expiresAt" < now() - make_interval(secs => $1) LIMIT $2)`,
  audit: `DELETE FROM audit_event WHERE id IN (
      SELECT id FROM audit_event WHERE at < now() - make_interval(secs => $1) ORDER BY at LIMIT $2)`,
}

/** Deletes what is older than it has to be kept, in small portions; answers how many rows of each kind. */
export async function pruneRecords(pool: pg.Pool): Promise<Record<RecordKind, number>> {
  const keep = await readRecordRetention(pool)
  const deleted = { operation: 0, incident: 0, session: 0, audit: 0 }
  for (const kind of recordKinds)
    for (let batch = 0; batch < BATCHES_MAX; batch++) {
      const { rowCount } = await pool.query(tooOld[kind], [keep[kind], BATCH])
      deleted[kind] += rowCount ?? 0
      if ((rowCount ?? 0) < BATCH) break
    }
  return deleted
}
