import { randomUUID } from 'node:crypto'
import { Fault, HOST_CHECK_VERSION, HOST_STALE_MS, HostCheck, fault as makeFault } from '@floe/domain'
import type { Queryable, Transaction } from '../database'
import type { Actor } from './audit'
import { CONTROLLER_ACTOR } from './cluster'

/** Of a check that nobody asked for and that returned no result: the next one comes after this. */
const AFTER_A_FAULT_MS = 3_600_000
/** So many may be open before more are asked for: a person who asks does not wait behind a whole fleet. */
const OPEN_AT_MOST = 8

/** The last check of a host that returned a result, and why a later one did not. */
export type HostCheckView = {
  last: { at: Date; actorName: string; check: HostCheck } | null
  failed: { at: Date; actorName: string; fault: Fault } | null
  /** Since when one is being carried out. */
  openSince: Date | null
}

const notReadable = makeFault(
  'host.check_unreadable',
  'the last check was stored by another version of Floe',
  {
    hint: 'Check the host again.',
  },
)

/** Asks for a check of a host; while one is open, also one that no controller took yet, it is that one. `created` says whether it is new. */
export async function askHostCheck(
  tx: Transaction,
  asked: { hostId: string; actor: Actor },
): Promise<{ checkId: string; created: boolean }> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`host_check ${asked.hostId}`])
  const { rows } = await tx.query<{ id: string }>(
    `SELECT id FROM host_check WHERE "hostId" = $1 AND "endedAt" IS NULL`,
    [asked.hostId],
  )
  if (rows[0]) return { checkId: rows[0].id, created: false }
  const checkId = randomUUID()
  await tx.query(`INSERT INTO host_check (id, "hostId", actor, "actorName") VALUES ($1, $2, $3, $4)`, [
    checkId,
    asked.hostId,
    asked.actor.id,
    asked.actor.name,
  ])
  return { checkId, created: true }
}

/**
 * Asks for the checks that are due though nobody asks: of hosts that answer, by agents that know the task (contract 1.19), and
 * of which no check returned a result for `everyMs`, or none that this version can read. Answers the hosts.
 */
export async function askDueHostChecks(on: Queryable, everyMs: number): Promise<string[]> {
  const { rows } = await on.query<{ hostId: string }>(
    `INSERT INTO host_check (id, "hostId", actor, "actorName")
     SELECT gen_random_uuid(), h.id, $1, $2
       FROM host h
      CROSS JOIN LATERAL (
            SELECT coalesce(bool_or(c."endedAt" IS NULL), false) AS open,
                   max(c."endedAt") FILTER (WHERE c.result ->> 'version' = $7) AS told,
                   max(c."endedAt") FILTER (WHERE c.fault IS NOT NULL) AS failed
              FROM host_check c WHERE c."hostId" = h.id) AS c
      WHERE h."removedAt" IS NULL AND h."revokedAt" IS NULL
        AND h."observedAt" > now() - make_interval(secs => $3 / 1000.0)
        AND CASE WHEN h."contractVersion" ~ '^[0-9]{1,4}[.][0-9]{1,4}$'
                 THEN string_to_array(h."contractVersion", '.')::int[] >= ARRAY[1, 19] ELSE false END
        AND NOT c.open
        AND (c.told IS NULL OR c.told <= now() - make_interval(secs => $4 / 1000.0))
        AND (c.failed IS NULL OR c.failed <= now() - make_interval(secs => $5 / 1000.0))
      ORDER BY c.told NULLS FIRST, h.id
      LIMIT greatest(0, $6 - (SELECT count(*) FROM host_check WHERE "endedAt" IS NULL))
     ON CONFLICT DO NOTHING
     RETURNING "hostId"`,
    [
      ...[CONTROLLER_ACTOR.id, CONTROLLER_ACTOR.name, HOST_STALE_MS, everyMs, AFTER_A_FAULT_MS, OPEN_AT_MOST],
      String(HOST_CHECK_VERSION),
    ],
  )
  return rows.map((row) => row.hostId)
}

/** How a check stands: `taken` once a controller has begun, `ended` with a fault where it returned no result. */
export async function readHostCheck(
  on: Queryable,
  checkId: string,
): Promise<{ taken: boolean; ended: { fault: Fault | null } | null } | undefined> {
  const { rows } = await on.query<{ taken: boolean; ended: boolean; fault: unknown }>(
    `SELECT "takenUntil" IS NOT NULL AS taken, "endedAt" IS NOT NULL AS ended, fault FROM host_check WHERE id = $1`,
    [checkId],
  )
  const row = rows[0]
  return row && { taken: row.taken, ended: row.ended ? { fault: Fault.nullable().parse(row.fault) } : null }
}

/** What is known of a host by its checks. */
export async function showHostCheck(on: Queryable, hostId: string): Promise<HostCheckView> {
  const { rows } = await on.query<{
    createdAt: Date
    endedAt: Date | null
    actorName: string
    result: unknown
    fault: unknown
  }>(
    `SELECT "createdAt", "endedAt", "actorName", result, fault FROM host_check
      WHERE "hostId" = $1 ORDER BY "endedAt" DESC NULLS FIRST`,
    [hostId],
  )
  const told = rows.find((row) => row.result !== null)
  const ended = rows.find((row) => row.endedAt !== null)
  const check = HostCheck.safeParse(told?.result)
  const fault = Fault.safeParse(ended?.fault)
  // a later version wrote it; a check that failed since says its own reason
  const unreadable = told?.endedAt && !check.success && !fault.success ? told : null
  return {
    last:
      told?.endedAt && check.success
        ? { at: told.endedAt, actorName: told.actorName, check: check.data }
        : null,
    failed:
      ended?.endedAt && fault.success
        ? { at: ended.endedAt, actorName: ended.actorName, fault: fault.data }
        : unreadable?.endedAt
          ? { at: unreadable.endedAt, actorName: unreadable.actorName, fault: notReadable.fault }
          : null,
    openSince: rows.find((row) => row.endedAt === null)?.createdAt ?? null,
  }
}

/** Takes checks that nobody carries out, the oldest first; each is the caller's for `leaseMs`. */
export async function takeHostChecks(
  on: Queryable,
  o: { leaseMs: number; limit: number },
): Promise<{ checkId: string; hostId: string }[]> {
  const { rows } = await on.query<{ checkId: string; hostId: string }>(
    `UPDATE host_check SET "takenUntil" = now() + make_interval(secs => $1 / 1000.0)
      WHERE id IN (SELECT id FROM host_check
                    WHERE "endedAt" IS NULL AND ("takenUntil" IS NULL OR "takenUntil" < now())
                    ORDER BY "createdAt" LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING id AS "checkId", "hostId"`,
    [o.leaseMs, o.limit],
  )
  return rows
}

/** Keeps a check that takes longer; 0 gives it back. */
export async function keepHostCheck(on: Queryable, checkId: string, leaseMs: number): Promise<void> {
  await on.query(
    `UPDATE host_check SET "takenUntil" = now() + make_interval(secs => $2 / 1000.0) WHERE id = $1 AND "endedAt" IS NULL`,
    [checkId, leaseMs],
  )
}

/** Ends a check, once, and drops those of its host that it replaces. */
export async function endHostCheck(
  tx: Transaction,
  checkId: string,
  end: { check: HostCheck } | { fault: Fault },
): Promise<void> {
  const told = 'check' in end
  const { rows } = await tx.query<{ hostId: string }>(
    `UPDATE host_check SET result = $2, fault = $3, "endedAt" = now() WHERE id = $1 AND "endedAt" IS NULL
     RETURNING "hostId"`,
    [checkId, told ? JSON.stringify(end.check) : null, told ? null : JSON.stringify(end.fault)],
  )
  if (!rows[0]) return
  // one that returned no result leaves what an earlier one reported
  await tx.query(
    `DELETE FROM host_check WHERE "hostId" = $1 AND id <> $2 AND "endedAt" IS NOT NULL AND ($3 OR result IS NULL)`,
    [rows[0].hostId, checkId, told],
  )
}
