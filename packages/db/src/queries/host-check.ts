import { randomUUID } from 'node:crypto'
import { Fault, HostCheck } from '@floe/domain'
import type { Queryable, Transaction } from '../database'
import type { Actor } from './audit'

/** The last check of a host that told something, and why a later one did not. */
export type HostCheckView = {
  last: { at: Date; actorName: string; check: HostCheck } | null
  failed: { at: Date; actorName: string; fault: Fault } | null
  /** Since when one is being carried out. */
  openSince: Date | null
}

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

/** How a check stands: `taken` once a controller has begun, `ended` with a fault where it told nothing. */
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
  return {
    last:
      told?.endedAt && check.success
        ? { at: told.endedAt, actorName: told.actorName, check: check.data }
        : null,
    failed:
      ended?.endedAt && fault.success
        ? { at: ended.endedAt, actorName: ended.actorName, fault: fault.data }
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
  // one that told nothing leaves what an earlier one told
  await tx.query(
    `DELETE FROM host_check WHERE "hostId" = $1 AND id <> $2 AND "endedAt" IS NOT NULL AND ($3 OR result IS NULL)`,
    [rows[0].hostId, checkId, told],
  )
}
