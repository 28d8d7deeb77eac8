import type { ConfirmedSetting } from '@floe/domain'
import type { Queryable, Transaction } from '../database'

/** Whose settings: those of one instance, or of all members of a cluster that are not deleted. */
type Scope = { instanceId: string } | { clusterId: string }

/** A condition on `instance i`, whose `$1` is `idOf` the scope. */
const inScope = (scope: Scope) =>
  'instanceId' in scope ? 'i.id = $1' : 'i."clusterId" = $1 AND i."deletedAt" IS NULL'
const idOf = (scope: Scope) => ('instanceId' in scope ? scope.instanceId : scope.clusterId)

export type SettingChangeView = ConfirmedSetting & {
  id: string
  at: Date
  operationId: string
  instanceId: string
  instanceName: string
  /** Why, in the words of who asked. */
  reason: string | null
  actor: string
  actorName: string
}

/** Who changed which setting of which instance when, newest first. */
export async function listSettingChanges(
  on: Queryable,
  scope: Scope,
  { name, limit = 100 }: { name?: string | undefined; limit?: number | undefined } = {},
): Promise<SettingChangeView[]> {
  const { rows } = await on.query<SettingChangeView>(
    `SELECT c.id::text, c.at, c."operationId", c.name, c."oldValue", c."newValue", c."pendingRestart", c.reason, c.actor,
            c."actorName", i.id AS "instanceId", i.name AS "instanceName"
       FROM setting_change c JOIN instance i ON i.id = c."instanceId"
      WHERE ${inScope(scope)} AND ($2::text IS NULL OR c.name = $2)
      ORDER BY c.id DESC LIMIT $3`,
    [idOf(scope), name ?? null, limit],
  )
  return rows
}

/**
 * Writes what an instance confirmed of a change, once per operation, instance and name; the actor is the operation's. What
 * has the value that it had before is no change.
 */
export async function insertSettingChanges(
  tx: Transaction,
  operationId: string,
  confirmed: readonly ConfirmedSetting[],
  more: {
    /** Why; the reason that stands in the operation's input when left out. */
    reason?: string | null | undefined
    /** A member of the operation's cluster; its own instance when left out. */
    instanceId?: string | undefined
  } = {},
): Promise<void> {
  await tx.query(
    `INSERT INTO setting_change ("instanceId", "operationId", name, "oldValue", "newValue", "pendingRestart", reason, actor, "actorName")
     SELECT coalesce($4::uuid, o."instanceId"), o.id, c.name, c."oldValue", c."newValue", c."pendingRestart", coalesce($3, o.input ->> 'reason'),
            o.actor, o."actorName"
       FROM operation o,
            jsonb_to_recordset($2::jsonb) AS c (name text, "oldValue" text, "newValue" text, "pendingRestart" boolean)
      WHERE o.id = $1 AND c."oldValue" IS DISTINCT FROM c."newValue"
     ON CONFLICT ("operationId", "instanceId", name) DO NOTHING`,
    [operationId, JSON.stringify(confirmed), more.reason ?? null, more.instanceId ?? null],
  )
}

export type SettingRevisionView = {
  id: string
  instanceId: string
  operationId: string | null
  at: Date
  /** Floe's file after the change, name → value. */
  managed: Record<string, string>
  reason: string | null
  actor: string
  actorName: string
}

/**
 * Revisions of managed settings, newest first: the newest `limit`, and of each instance the one that held before them and
 * its oldest. With `asOf`, the id of a revision, also the one that each instance had then.
 */
export async function listSettingRevisions(
  on: Queryable,
  scope: Scope,
  { limit = 500, asOf }: { limit?: number | undefined; asOf?: string | undefined } = {},
): Promise<SettingRevisionView[]> {
  const { rows } = await on.query<SettingRevisionView>(
    `WITH own AS (SELECT r.* FROM setting_revision r JOIN instance i ON i.id = r."instanceId" WHERE ${inScope(scope)}),
          newest AS (SELECT id FROM own ORDER BY id DESC LIMIT $2)
     SELECT r.id::text, r."instanceId", r."operationId", r.at, r.managed, r.reason, r.actor, r."actorName" FROM own r
      WHERE r.id >= (SELECT min(id) FROM newest)
         OR r.id IN (SELECT max(id) FROM own WHERE id < (SELECT min(id) FROM newest) GROUP BY "instanceId")
         OR r.id IN (SELECT min(id) FROM own GROUP BY "instanceId")
         OR r.id IN (SELECT max(id) FROM own WHERE id <= $3::bigint GROUP BY "instanceId")
      ORDER BY r.id DESC`,
    [idOf(scope), limit, asOf ?? null],
  )
  return rows
}

/**
 * Writes what the managed file holds after an operation, once, unless it is what the newest revision holds; the actor is the
 * operation's. `before` becomes the oldest revision where none is known yet.
 */
export async function insertSettingRevision(
  tx: Transaction,
  operationId: string,
  revision: {
    managed: Record<string, string>
    before?: Record<string, string> | undefined
    reason?: string | null | undefined
    /** A member of the operation's cluster; its own instance when left out. */
    instanceId?: string | undefined
  },
): Promise<void> {
  const instanceId = revision.instanceId ?? null
  if (revision.before)
    await tx.query(
      `INSERT INTO setting_revision ("instanceId", at, managed, reason, actor, "actorName")
       SELECT coalesce($3::uuid, o."instanceId"), coalesce(o."startedAt", now()), $2, 'as it was found', 'controller', 'controller'
         FROM operation o
        WHERE o.id = $1
          AND NOT EXISTS (SELECT 1 FROM setting_revision s WHERE s."instanceId" = coalesce($3::uuid, o."instanceId"))`,
      [operationId, JSON.stringify(revision.before), instanceId],
    )
  await tx.query(
    `INSERT INTO setting_revision ("instanceId", "operationId", managed, reason, actor, "actorName")
     SELECT coalesce($4::uuid, o."instanceId"), o.id, $2, coalesce($3, o.input ->> 'reason'), o.actor, o."actorName"
       FROM operation o
      WHERE o.id = $1
        AND $2::jsonb IS DISTINCT FROM (SELECT s.managed FROM setting_revision s
                                         WHERE s."instanceId" = coalesce($4::uuid, o."instanceId")
                                         ORDER BY s.id DESC LIMIT 1)
     ON CONFLICT ("operationId", "instanceId") DO NOTHING`,
    [operationId, JSON.stringify(revision.managed), revision.reason ?? null, instanceId],
  )
}
