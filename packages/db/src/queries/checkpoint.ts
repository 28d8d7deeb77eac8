import type { CheckpointRecord } from '@floe/telemetry'
import type { Queryable } from '../database'

export type CheckpointView = CheckpointRecord & { seq: number }

/** Columns a list of checkpoints can be sorted by. */
export const checkpointOrders = [
  'completedAt',
  'buffersWritten',
  'writeMs',
  'syncMs',
  'totalMs',
  'syncFiles',
  'longestSyncMs',
  'averageSyncMs',
  'distanceBytes',
  'estimateBytes',
] as const
export type CheckpointOrder = (typeof checkpointOrders)[number]

const columns = `kind, reasons, "buffersWritten", "buffersPercent", "slruBuffersWritten", "walFilesAdded",
  "walFilesRemoved", "walFilesRecycled", "writeMs", "syncMs", "totalMs", "syncFiles", "longestSyncMs", "averageSyncMs",
  "distanceBytes", "estimateBytes", lsn, "redoLsn"`

/**
 * Checkpoints of an instance that completed between `from` and `to` (ms since the epoch), newest first unless another
 * order is asked for; at most `limit` (default 200).
 */
export async function listCheckpoints(
  on: Queryable,
  input: {
    instanceId: string
    from?: number | undefined
    to?: number | undefined
    orderBy?: CheckpointOrder | undefined
    descending?: boolean | undefined
    limit?: number | undefined
  },
): Promise<CheckpointView[]> {
  const order = checkpointOrders.find((name) => name === input.orderBy) ?? 'completedAt'
  const { rows } = await on.query<CheckpointView>(
    `SELECT seq::float8, (extract(epoch FROM "startedAt") * 1000)::float8 AS "startedAt",
            (extract(epoch FROM "completedAt") * 1000)::float8 AS "completedAt", ${columns}
       FROM checkpoint_record c
      WHERE "instanceId" = $1
        AND ($2::float8 IS NULL OR "completedAt" >= to_timestamp($2 / 1000.0))
        AND ($3::float8 IS NULL OR "completedAt" <= to_timestamp($3 / 1000.0))
      ORDER BY c."${order}" ${(input.descending ?? true) ? 'DESC' : 'ASC'}, c.seq DESC LIMIT $4`,
    [input.instanceId, input.from ?? null, input.to ?? null, input.limit ?? 200],
  )
  return rows
}

/** Number of the newest checkpoint stored of an instance, 0 when there is none. */
export async function newestCheckpointSeq(on: Queryable, instanceId: string): Promise<number> {
  const { rows } = await on.query<{ seq: number }>(
    `SELECT coalesce(max(seq), 0)::float8 AS seq FROM checkpoint_record WHERE "instanceId" = $1`,
    [instanceId],
  )
  return rows[0]?.seq ?? 0
}

/** Stores checkpoints of an instance; those already stored stay as they are. Answers how many were new. */
export async function insertCheckpoints(
  on: Queryable,
  instanceId: string,
  checkpoints: readonly CheckpointView[],
): Promise<number> {
  if (checkpoints.length === 0) return 0
  const { rowCount } = await on.query(
    `INSERT INTO checkpoint_record ("instanceId", seq, "startedAt", "completedAt", ${columns})
     SELECT $1, seq, to_timestamp("startedAt" / 1000.0), to_timestamp("completedAt" / 1000.0), ${columns}
       FROM jsonb_to_recordset($2::jsonb) AS c (
         seq bigint, "startedAt" float8, "completedAt" float8, kind text, reasons text[], "buffersWritten" int,
         "buffersPercent" float8, "slruBuffersWritten" int, "walFilesAdded" int, "walFilesRemoved" int,
         "walFilesRecycled" int, "writeMs" float8, "syncMs" float8, "totalMs" float8, "syncFiles" int,
         "longestSyncMs" float8, "averageSyncMs" float8, "distanceBytes" float8, "estimateBytes" float8, lsn text,
         "redoLsn" text)
     ON CONFLICT ("instanceId", seq) DO NOTHING`,
    [instanceId, JSON.stringify(checkpoints)],
  )
  return rowCount ?? 0
}

/** Removes checkpoints older than the coarsest samples are kept; answers how many. */
export async function pruneCheckpoints(on: Queryable): Promise<number> {
  const { rowCount } = await on.query(
    `DELETE FROM checkpoint_record WHERE "completedAt" < now() - make_interval(secs =>
       (SELECT max(keep_seconds) FROM telemetry.retention))`,
  )
  return rowCount ?? 0
}
