import type { Queryable } from '../database'

/** Who asked: a user's id, an API token's id, or `controller`; the name as it was then. */
export type Actor = { id: string; name: string }

export type AuditEvent = {
  actor: Actor
  /** `noun.verb`, e.g. `instance.create`. */
  action: string
  outcome: 'allowed' | 'denied'
  objectKind?: string | undefined
  objectId?: string | undefined
  /** What is worth knowing of it; never a secret. */
  detail?: Record<string, unknown> | undefined
  ipAddress?: string | null | undefined
}

/** Writes one audit row; in the transaction of the change when `on` is that transaction. */
export async function insertAuditEvent(on: Queryable, event: AuditEvent): Promise<void> {
  await on.query(
    `INSERT INTO audit_event (actor, "actorName", action, outcome, "objectKind", "objectId", detail, "ipAddress")
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      event.actor.id,
      event.actor.name,
      event.action,
      event.outcome,
      event.objectKind ?? null,
      event.objectId ?? null,
      event.detail === undefined ? null : JSON.stringify(event.detail),
      event.ipAddress ?? null,
    ],
  )
}

/** Audit rows, newest first; `before` is the id of the last one already seen. */
export async function listAuditEvents(
  on: Queryable,
  input: { limit?: number; before?: string | undefined } = {},
) {
  const { rows } = await on.query(
    `SELECT id::text, at, actor, "actorName", action, outcome, "objectKind", "objectId", detail, "ipAddress"
       FROM audit_event WHERE $1::bigint IS NULL OR id < $1::bigint ORDER BY id DESC LIMIT $2`,
    [input.before ?? null, input.limit ?? 100],
  )
  return rows as {
    id: string
    at: Date
    actor: string
    actorName: string
    action: string
    outcome: 'allowed' | 'denied'
    objectKind: string | null
    objectId: string | null
    detail: Record<string, unknown> | null
    ipAddress: string | null
  }[]
}
