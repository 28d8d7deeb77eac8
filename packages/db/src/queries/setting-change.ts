import type { Queryable, Transaction } from '../database'

export type SettingChangeView = {
  id: string
  at: Date
  operationId: string
  name: string
  /** As SHOW printed them before and after; null where unknown. */
  oldValue: string | null
  newValue: string | null
  /** The new value waits for a restart. */
  pendingRestart: boolean
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
    `SELECT id::text, at, "operationId", name, "oldValue", "newValue", "pendingRestart", actor, "actorName"
       FROM setting_change
      WHERE "instanceId" = $1 AND ($2::text IS NULL OR name = $2) AND ($3::bigint IS NULL OR id < $3)
      ORDER BY id DESC LIMIT $4`,
    [input.instanceId, input.name ?? null, input.before ?? null, input.limit ?? 100],
  )
  return rows
}

/** Writes what an instance confirmed of a change, once per operation and name; the actor is the operation's. */
export async function insertSettingChanges(
  tx: Transaction,
  operationId: string,
  confirmed: readonly {
    name: string
    oldValue: string | null
    newValue: string | null
    pendingRestart: boolean
  }[],
): Promise<void> {
  await tx.query(
    `INSERT INTO setting_change ("instanceId", "operationId", name, "oldValue", "newValue", "pendingRestart", actor, "actorName")
     SELECT o."instanceId", o.id, c.name, c."oldValue", c."newValue", c."pendingRestart", o.actor, o."actorName"
       FROM operation o,
            jsonb_to_recordset($2::jsonb) AS c (name text, "oldValue" text, "newValue" text, "pendingRestart" boolean)
      WHERE o.id = $1
     ON CONFLICT ("operationId", name) DO NOTHING`,
    [operationId, JSON.stringify(confirmed)],
  )
}
