import { InstanceLimits, LimitDriverKind } from '@floe/domain'
import type { Queryable, Transaction } from '../database'

export type LimitChangeView = {
  at: Date
  operationId: string
  before: InstanceLimits
  after: InstanceLimits
  /** Why, in the words of who asked. */
  reason: string | null
  actorName: string
}

/** Limits as a row has them: null is none, and one that was written before a limit was known has none of it. */
export const recordedLimits = (stored: unknown): InstanceLimits => InstanceLimits.parse(stored ?? {})

/** Who changed the limits of an instance when, newest first. */
export async function listLimitChanges(
  on: Queryable,
  instanceId: string,
  limit = 50,
): Promise<LimitChangeView[]> {
  const { rows } = await on.query<LimitChangeView>(
    `SELECT at, "operationId", before, after, reason, "actorName" FROM limit_change
      WHERE "instanceId" = $1 ORDER BY id DESC LIMIT $2`,
    [instanceId, limit],
  )
  return rows.map((row) => ({
    ...row,
    before: recordedLimits(row.before),
    after: recordedLimits(row.after),
  }))
}

/**
 * Records the limits that the agent confirmed of the operation's instance, once per operation; the actor is the operation's.
 * What is as it was is no change.
 */
export async function recordLimits(
  tx: Transaction,
  operationId: string,
  limits: InstanceLimits,
): Promise<void> {
  await tx.query(
    `INSERT INTO limit_change ("instanceId", "operationId", before, after, reason, actor, "actorName")
     SELECT i.id, o.id, i.limits, $2::jsonb, o.input ->> 'reason', o.actor, o."actorName"
       FROM operation o JOIN instance i ON i.id = o."instanceId"
      WHERE o.id = $1 AND i.limits IS DISTINCT FROM $2::jsonb
     ON CONFLICT ("operationId") DO NOTHING`,
    [operationId, JSON.stringify(limits)],
  )
  await tx.query(
    `UPDATE instance i SET limits = $2::jsonb FROM operation o WHERE o.id = $1 AND i.id = o."instanceId"`,
    [operationId, JSON.stringify(limits)],
  )
}

/** The recorded limits of each of a host's instances that are not deleted, and how its agent limits it. */
export async function listLimitsOfHost(
  on: Queryable,
  hostId: string,
): Promise<{ limits: InstanceLimits; driver: LimitDriverKind | null }[]> {
  const { rows } = await on.query<{ limits: unknown; driver: unknown }>(
    `SELECT limits, observed #>> '{limits,driver}' AS driver
       FROM instance WHERE "hostId" = $1 AND "deletedAt" IS NULL`,
    [hostId],
  )
  return rows.map((row) => ({
    limits: recordedLimits(row.limits),
    driver: LimitDriverKind.nullable().catch(null).parse(row.driver),
  }))
}
