import { createHash, randomUUID } from 'node:crypto'
import type { Fault, SettingChange } from '@floe/domain'
import type { Queryable, Transaction } from '../database'
import type { Actor } from './audit'

/** What is asked of one instance, or of a host about an instance that is not there yet (`instanceId` null). */
export type SettingCheckTarget = {
  instanceId: string | null
  hostId: string
  changes: SettingChange[]
  acrossCluster: boolean
}

/** What a target answered, in the order of the targets: results as the agent gave them, or why there are none. */
export type SettingCheckAnswer = { fault: Fault | null; results: unknown[] }

/** A check that has not been answered is the same one for as long as this, one that has been for a moment only. */
const SAME_OPEN_SECONDS = 60
const SAME_ANSWERED_SECONDS = 2
/** Asked longer ago than this, nobody waits for the answer any more. */
const STALE_SECONDS = 60

/**
 * Asks for a check; the same one by the same actor a moment ago is the same row. `created` says whether it is new.
 */
export async function askSettingCheck(
  tx: Transaction,
  asked: { targets: SettingCheckTarget[]; actor: Actor },
): Promise<{ checkId: string; created: boolean }> {
  const targets = JSON.stringify(asked.targets)
  const digest = createHash('sha256').update(targets).digest('hex')
  await tx.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`setting_check ${asked.actor.id} ${digest}`])
  const { rows } = await tx.query<{ id: string }>(
    `SELECT id FROM setting_check
      WHERE actor = $1 AND digest = $2
        AND ("endedAt" > now() - make_interval(secs => $4)
             OR "endedAt" IS NULL AND "createdAt" > now() - make_interval(secs => $3))
      ORDER BY "createdAt" DESC LIMIT 1`,
    [asked.actor.id, digest, SAME_OPEN_SECONDS, SAME_ANSWERED_SECONDS],
  )
  if (rows[0]) return { checkId: rows[0].id, created: false }
  const checkId = randomUUID()
  await tx.query(
    `INSERT INTO setting_check (id, targets, digest, actor, "actorName") VALUES ($1, $2, $3, $4, $5)`,
    [checkId, targets, digest, asked.actor.id, asked.actor.name],
  )
  return { checkId, created: true }
}

/** How a check stands: `taken` once a controller has begun, `answers` once it has ended. */
export async function readSettingCheck(
  on: Queryable,
  checkId: string,
): Promise<{ taken: boolean; answers: SettingCheckAnswer[] | null } | undefined> {
  const { rows } = await on.query<{ taken: boolean; answers: SettingCheckAnswer[] | null }>(
    'SELECT "takenUntil" IS NOT NULL AS taken, answers FROM setting_check WHERE id = $1',
    [checkId],
  )
  return rows[0]
}

/** Takes checks that nobody carries out, the oldest first; each is the caller's for `leaseMs`. */
export async function takeSettingChecks(
  on: Queryable,
  o: { leaseMs: number; limit: number },
): Promise<{ checkId: string; targets: SettingCheckTarget[] }[]> {
  const { rows } = await on.query<{ checkId: string; targets: SettingCheckTarget[] }>(
    `UPDATE setting_check SET "takenUntil" = now() + make_interval(secs => $1 / 1000.0)
      WHERE id IN (SELECT id FROM setting_check
                    WHERE "endedAt" IS NULL AND ("takenUntil" IS NULL OR "takenUntil" < now())
                      AND "createdAt" > now() - make_interval(secs => $3)
                    ORDER BY "createdAt" LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING id AS "checkId", targets`,
    [o.leaseMs, o.limit, STALE_SECONDS],
  )
  return rows
}

/** Keeps a check that takes longer; 0 gives it back. */
export async function keepSettingCheck(on: Queryable, checkId: string, leaseMs: number): Promise<void> {
  await on.query(
    `UPDATE setting_check SET "takenUntil" = now() + make_interval(secs => $2 / 1000.0) WHERE id = $1 AND "endedAt" IS NULL`,
    [checkId, leaseMs],
  )
}

/** Answers a check, once. */
export async function answerSettingCheck(
  on: Queryable,
  checkId: string,
  answers: SettingCheckAnswer[],
): Promise<void> {
  await on.query(
    'UPDATE setting_check SET answers = $2, "endedAt" = now() WHERE id = $1 AND "endedAt" IS NULL',
    [checkId, JSON.stringify(answers)],
  )
}

/** Deletes checks that were asked an hour ago; answers how many. */
export async function pruneSettingChecks(on: Queryable): Promise<number> {
  const { rowCount } = await on.query(
    `DELETE FROM setting_check WHERE "createdAt" < now() - interval '1 hour'`,
  )
  return rowCount ?? 0
}
