import { metricPosition, StallRecord } from '@floe/telemetry'
import type { Queryable } from '../database'

export type StallView = StallRecord & { seq: number }

const columns = `cause, waits, sessions, checkpoint, "checkpointerStopped", "checkpointerHangsIn", device`

/** Stalls of an instance that reach into the time between `from` and `to` (ms since the epoch), newest first. */
export async function listStalls(
  on: Queryable,
  input: {
    instanceId: string
    from?: number | undefined
    to?: number | undefined
    limit?: number | undefined
  },
): Promise<StallView[]> {
  const { rows } = await on.query<StallView>(
    `SELECT seq::float8, (extract(epoch FROM "startedAt") * 1000)::float8 AS "startedAt",
            (extract(epoch FROM "endedAt") * 1000)::float8 AS "endedAt", ${columns}
       FROM stall_record s
      WHERE "instanceId" = $1
        AND ($2::float8 IS NULL OR "endedAt" >= to_timestamp($2 / 1000.0))
        AND ($3::float8 IS NULL OR "startedAt" <= to_timestamp($3 / 1000.0))
      ORDER BY s."endedAt" DESC, s.seq DESC LIMIT $4`,
    [input.instanceId, input.from ?? null, input.to ?? null, input.limit ?? 200],
  )
  return rows.map((row) => ({ ...StallRecord.parse(row), seq: row.seq }))
}

/** A stall of one of a host's instances, and which of them read and wrote most meanwhile. */
export type StallOfHost = StallRecord & {
  instanceId: string
  name: string
  /** `share` is of what all instances of the host read and wrote; null: nobody did anything, or nothing is known. */
  most: { name: string; share: number } | null
}

/** The newest stalls of a host's instances that ended in the last `withinMs`, newest first; at most 100. */
export async function listStallsOfHost(
  on: Queryable,
  hostId: string,
  withinMs: number,
): Promise<StallOfHost[]> {
  const bytes = (metric: 'process_read_bytes' | 'process_write_bytes') =>
    `coalesce(t."values"[${metricPosition(metric) + 1}], 0)`
  const { rows } = await on.query<StallOfHost>(
    `SELECT i.id AS "instanceId", i.name, (extract(epoch FROM s."startedAt") * 1000)::float8 AS "startedAt",
            (extract(epoch FROM s."endedAt") * 1000)::float8 AS "endedAt", s.cause, s.waits, s.sessions, s.checkpoint,
            s."checkpointerStopped", s."checkpointerHangsIn", s.device, m.most
       FROM stall_record s JOIN instance i ON i.id = s."instanceId" AND i."deletedAt" IS NULL
       LEFT JOIN LATERAL (
            SELECT jsonb_build_object('name', o.name, 'share', o.bytes / o.all_bytes) AS most
              FROM (SELECT n.name, sum(${bytes('process_read_bytes')} + ${bytes('process_write_bytes')}) AS bytes,
                           sum(sum(${bytes('process_read_bytes')} + ${bytes('process_write_bytes')})) OVER () AS all_bytes
                      FROM instance n JOIN telemetry.sample t ON t.instance_id = n.id
                     WHERE n."hostId" = i."hostId" AND n."deletedAt" IS NULL
                       AND t.at >= s."startedAt" AND t.at <= s."endedAt"
                     GROUP BY n.id) o
             WHERE o.all_bytes > 0 ORDER BY o.bytes DESC LIMIT 1) m ON true
      WHERE i."hostId" = $1 AND s."endedAt" > now() - make_interval(secs => $2 / 1000.0)
      ORDER BY s."endedAt" DESC LIMIT 100`,
    [hostId, withinMs],
  )
  return rows.map(({ instanceId, name, most, ...stall }) => ({
    ...StallRecord.parse(stall),
    ...{ instanceId, name, most },
  }))
}

/** Number of the newest stall stored of an instance, 0 when there is none. */
export async function newestStallSeq(on: Queryable, instanceId: string): Promise<number> {
  const { rows } = await on.query<{ seq: number }>(
    `SELECT coalesce(max(seq), 0)::float8 AS seq FROM stall_record WHERE "instanceId" = $1`,
    [instanceId],
  )
  return rows[0]?.seq ?? 0
}

/** Stores stalls of an instance; those already stored stay as they are. Answers how many were new. */
export async function insertStalls(
  on: Queryable,
  instanceId: string,
  stalls: readonly StallView[],
): Promise<number> {
  if (stalls.length === 0) return 0
  const { rowCount } = await on.query(
    `INSERT INTO stall_record ("instanceId", seq, "startedAt", "endedAt", ${columns})
     SELECT $1, seq, to_timestamp("startedAt" / 1000.0), to_timestamp("endedAt" / 1000.0), ${columns}
       FROM jsonb_to_recordset($2::jsonb) AS s (
         seq bigint, "startedAt" float8, "endedAt" float8, cause text, waits jsonb, sessions int, checkpoint jsonb,
         "checkpointerStopped" boolean, "checkpointerHangsIn" text, device text)
     ON CONFLICT ("instanceId", seq) DO NOTHING`,
    [instanceId, JSON.stringify(stalls)],
  )
  return rowCount ?? 0
}

/** Removes stalls older than the coarsest samples are kept; answers how many. */
export async function pruneStalls(on: Queryable): Promise<number> {
  const { rowCount } = await on.query(
    `DELETE FROM stall_record WHERE "endedAt" < now() - make_interval(secs =>
       (SELECT max(keep_seconds) FROM telemetry.retention))`,
  )
  return rowCount ?? 0
}
