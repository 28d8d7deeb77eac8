import type { ConfirmedSetting } from '@floe/domain'
import type { Queryable, Transaction } from '../database'

export type SettingChangeView = ConfirmedSetting & {
  id: string
  at: Date
  operationId: string
  /** Why, in the words of who asked. */
  reason: string | null
  actor: string
  actorName: string
}

/** Who changed which setting of an instance when, newest first; `before` is the id of the last one already seen. */
export async function listSettingChanges(
  on: Queryable,
  input: {
    instanceId: string
    name?: string | undefined
    before?: string | undefined
    limit?: number | undefined
  },
): Promise<SettingChangeView[]> {
  const { rows } = await on.query<SettingChangeView>(
    `SELECT c.id::text, c.at, c."operationId", c.name, c."oldValue", c."newValue", c."pendingRestart", c.reason, c.actor,
            c."actorName"
       FROM setting_change c
      WHERE c."instanceId" = $1 AND ($2::text IS NULL OR c.name = $2) AND ($3::bigint IS NULL OR c.id < $3)
      ORDER BY c.id DESC LIMIT $4`,
    [input.instanceId, input.name ?? null, input.before ?? null, input.limit ?? 100],
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
  operationId: string | null
  at: Date
  /** Floe's file after the change, name → value. */
  managed: Record<string, string>
  reason: string | null
  actor: string
  actorName: string
}

const revisionColumns = 's.id::text, s."operationId", s.at, s.managed, s.reason, s.actor, s."actorName"'

/** Revisions of an instance's managed settings, newest first; the first one is the one that holds. */
export async function listSettingRevisions(
  on: Queryable,
  input: { instanceId: string; before?: string | undefined; limit?: number | undefined },
): Promise<SettingRevisionView[]> {
  const { rows } = await on.query<SettingRevisionView>(
    `SELECT ${revisionColumns} FROM setting_revision s
      WHERE s."instanceId" = $1 AND ($2::bigint IS NULL OR s.id < $2) ORDER BY s.id DESC LIMIT $3`,
    [input.instanceId, input.before ?? null, input.limit ?? 50],
  )
  return rows
}

/** One revision, undefined where the instance has none of this id. */
export async function findSettingRevision(
  on: Queryable,
  instanceId: string,
  id: string,
): Promise<SettingRevisionView | undefined> {
  const { rows } = await on.query<SettingRevisionView>(
    `SELECT ${revisionColumns} FROM setting_revision s WHERE s."instanceId" = $1 AND s.id = $2`,
    [instanceId, id],
  )
  return rows[0]
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

/** Who changed which setting on which member of a cluster when, newest first. */
export async function listClusterSettingChanges(
  on: Queryable,
  input: { clusterId: string; name?: string | undefined; limit?: number | undefined },
): Promise<(SettingChangeView & { instanceId: string; instanceName: string })[]> {
  const { rows } = await on.query<SettingChangeView & { instanceId: string; instanceName: string }>(
    `SELECT c.id::text, c.at, c."operationId", c.name, c."oldValue", c."newValue", c."pendingRestart", c.reason, c.actor,
            c."actorName", i.id AS "instanceId", i.name AS "instanceName"
       FROM setting_change c JOIN instance i ON i.id = c."instanceId"
      WHERE i."clusterId" = $1 AND i."deletedAt" IS NULL AND ($2::text IS NULL OR c.name = $2)
      ORDER BY c.id DESC LIMIT $3`,
    [input.clusterId, input.name ?? null, input.limit ?? 100],
  )
  return rows
}

/**
 * Revisions of all members of a cluster, newest first: the newest `limit`, and of each member the one that held before them
 * and its oldest.
 */
export async function listClusterSettingRevisions(
  on: Queryable,
  input: { clusterId: string; limit?: number | undefined },
): Promise<(SettingRevisionView & { instanceId: string })[]> {
  const { rows } = await on.query<SettingRevisionView & { instanceId: string }>(
    `WITH own AS (SELECT s.* FROM setting_revision s JOIN instance i ON i.id = s."instanceId"
                   WHERE i."clusterId" = $1 AND i."deletedAt" IS NULL),
          newest AS (SELECT id FROM own ORDER BY id DESC LIMIT $2)
     SELECT ${revisionColumns}, s."instanceId" FROM own s
      WHERE s.id >= (SELECT min(id) FROM newest)
         OR s.id IN (SELECT max(id) FROM own WHERE id < (SELECT min(id) FROM newest) GROUP BY "instanceId")
         OR s.id IN (SELECT min(id) FROM own GROUP BY "instanceId")
      ORDER BY s.id DESC`,
    [input.clusterId, input.limit ?? 500],
  )
  return rows
}
