import type { RepairedRecovery } from '@floe/domain'
import type { Queryable } from '../database'

/**
 * Starts of an instance after a crash, newest first, at most `limit` (default 50). Times in ms since the
 * epoch; counts are pages of 8 kB.
 */
export async function listRecoveries(
  on: Queryable,
  instanceId: string,
  limit = 50,
): Promise<RepairedRecovery[]> {
  const { rows } = await on.query<RepairedRecovery>(
    `SELECT kind, policy, (extract(epoch FROM "startedAt") * 1000)::float8 AS "startedAt",
            (extract(epoch FROM "endedAt") * 1000)::float8 AS "endedAt",
            CASE WHEN "startReadyAt" IS NOT NULL THEN json_build_object(
              'beganAt', (extract(epoch FROM "startBeganAt") * 1000)::float8,
              'readyAt', (extract(epoch FROM "startReadyAt") * 1000)::float8) END AS start, checked::float8, torn::float8,
            repaired::float8, cleared::float8, bytes::float8, sources
       FROM recovery_record r WHERE r."instanceId" = $1 ORDER BY r."startedAt" DESC LIMIT $2`,
    [instanceId, limit],
  )
  return rows
}

/**
 * Stores what an instance says of its last recovery; a later look at the same one counts, but for how long the start took,
 * which an agent that came later does not know.
 */
export async function putRecovery(
  on: Queryable,
  instanceId: string,
  recovery: RepairedRecovery,
): Promise<void> {
  await on.query(
    `INSERT INTO recovery_record ("instanceId", "startedAt", "endedAt", kind, policy, checked, torn, repaired, bytes, sources, cleared,
                                  "startBeganAt", "startReadyAt")
     SELECT i.id, to_timestamp($2::float8 / 1000), to_timestamp($3::float8 / 1000), $4, $5, $6, $7, $8, $9, $10, $11,
            to_timestamp($12::float8 / 1000), to_timestamp($13::float8 / 1000)
       FROM instance i WHERE i.id = $1 AND i."deletedAt" IS NULL
     ON CONFLICT ("instanceId", "startedAt") DO UPDATE
        SET "endedAt" = excluded."endedAt", checked = excluded.checked, torn = excluded.torn,
            repaired = excluded.repaired, cleared = excluded.cleared, bytes = excluded.bytes, sources = excluded.sources,
            "startBeganAt" = coalesce(excluded."startBeganAt", recovery_record."startBeganAt"),
            "startReadyAt" = coalesce(excluded."startReadyAt", recovery_record."startReadyAt")`,
    [
      instanceId,
      recovery.startedAt,
      recovery.endedAt,
      recovery.kind,
      recovery.policy,
      recovery.checked,
      recovery.torn,
      recovery.repaired,
      recovery.bytes,
      JSON.stringify(recovery.sources ?? []),
      recovery.cleared ?? 0,
      recovery.start?.beganAt ?? null,
      recovery.start?.readyAt ?? null,
    ],
  )
}
