import type { InstanceLimits } from '@floe/domain'
import type { Queryable, Transaction } from '../database'

export type LimitChangeView = {
  at: Date
  operationId: string
  /** Null: none were known. */
  before: InstanceLimits | null
  after: InstanceLimits
  /** Why, in the words of who asked. */
  reason: string | null
  actorName: string
}

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
  return rows
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

/** The recorded limits of all instances of a host that are not deleted; null: none. */
export async function listLimitsOfHost(
  on: Queryable,
  hostId: string,
): Promise<{ instanceId: string; name: string; limits: InstanceLimits | null }[]> {
  const { rows } = await on.query<{ instanceId: string; name: string; limits: InstanceLimits | null }>(
    `SELECT id AS "instanceId", name, limits FROM instance WHERE "hostId" = $1 AND "deletedAt" IS NULL ORDER BY name`,
    [hostId],
  )
  return rows
}
