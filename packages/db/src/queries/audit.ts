import type pg from 'pg'
import { inTransaction, type Queryable } from '../database'

/** Who asked: a user's id, an API token's id, or `controller`; the name as it was then. */
export type Actor = { id: string; name: string }

export type AuditEvent = {
  actor: Actor
  /** `noun.verb`, e.g. `instance.create`. */
  action: string
  outcome: AuditOutcome
  objectKind?: string | undefined
  objectId?: string | undefined
  /** What is worth knowing of it; never a secret. */
  detail?: Record<string, unknown> | undefined
  ipAddress?: string | null | undefined
}

export type AuditOutcome = 'allowed' | 'denied'

/**
 * Writes one audit row; in the transaction of the change when `on` is that transaction. Other audit rows wait until that
 * transaction has ended, since each one holds the hash of the one before it: it is to be the last thing that one does.
 */
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

export type AuditEventView = {
  eventId: string
  at: Date
  actor: string
  actorName: string
  action: string
  outcome: AuditOutcome
  objectKind: string | null
  objectId: string | null
  detail: Record<string, unknown> | null
  ipAddress: string | null
}

/** Where a page of audit rows ended. */
export type AuditPosition = { at: Date; eventId: string }

/** Audit rows, newest first. */
export async function listAuditEvents(
  on: Queryable,
  input: {
    /** Id or name of who asked. */
    actor?: string | undefined
    /** `noun.verb`, or a noun with all its verbs. */
    action?: string | undefined
    outcome?: AuditOutcome | undefined
    /** Id of an object, or its name where the row holds one. */
    object?: string | undefined
    /** The last one of the page before. */
    before?: AuditPosition | undefined
    limit?: number | undefined
  } = {},
): Promise<AuditEventView[]> {
  const { rows } = await on.query<AuditEventView>(
    `SELECT e.id::text AS "eventId", e.at, e.actor, e."actorName", e.action, e.outcome, e."objectKind", e."objectId",
            e.detail, e."ipAddress"
       FROM audit_event e
      WHERE ($1::text IS NULL OR e.actor = $1 OR e."actorName" = $1)
        AND ($2::text IS NULL OR e.action = $2 OR starts_with(e.action, $2 || '.'))
        AND ($3::text IS NULL OR e.outcome = $3)
        AND ($4::text IS NULL OR e."objectId" = $4 OR e.detail ->> 'name' = $4)
        AND ($5::timestamptz IS NULL OR (e.at, e.id) < ($5, $6::bigint))
      ORDER BY e.at DESC, e.id DESC LIMIT $7`,
    [
      input.actor ?? null,
      input.action ?? null,
      input.outcome ?? null,
      input.object ?? null,
      input.before?.at ?? null,
      input.before?.eventId ?? null,
      input.limit ?? 100,
    ],
  )
  return rows
}

/**
 * Where the chain of audit rows breaks. `changed`: a row is not what it was when its hash was made. `missing`: rows
 * between two others, or after the last one, are gone. `replaced`: a row does not follow the one before it, so that one
 * of the two was rewritten.
 */
export type AuditBreak = {
  kind: 'changed' | 'missing' | 'replaced'
  /** The first row that differs; of missing rows the first one that is missing. */
  eventId: string
  /** Of missing rows the last one. */
  lastId: string
  /** When the row was written; null of rows that are missing. */
  at: Date | null
}

export type AuditVerified = {
  /** Rows that were looked at. */
  rows: number
  /** The row before the oldest one, removed past its retention; 0 where none ever was. */
  anchorId: string
  /** The newest row and its hash in hexadecimal: kept elsewhere, it proves later that no row up to it was rewritten. */
  headId: string
  headHash: string
  /** The first place where the chain does not hold, null where it does. */
  broken: AuditBreak | null
  /** Of a hash that was kept elsewhere: the row it is of, null where no row has it. Undefined where none was given. */
  known?: { eventId: string; at: Date | null } | null
}

/** Rows hashed at once. */
const VERIFY_BATCH = 5_000

/**
 * Computes the hash of every audit row again, from the anchor on, in one snapshot; ends at the first that differs. `head`
 * is a hash that was noted earlier, in hexadecimal.
 */
export async function verifyAuditChain(pool: pg.Pool, head?: string): Promise<AuditVerified> {
  return inTransaction(pool, async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const { rows: chains } = await tx.query<{
      anchorId: string
      anchorHash: string
      headId: string
      headHash: string
    }>(
      `SELECT c."anchorId"::text, encode(c."anchorHash", 'hex') AS "anchorHash", c."headId"::text,
              encode(c."headHash", 'hex') AS "headHash" FROM audit_chain c`,
    )
    const chain = chains[0]
    if (!chain) throw new Error('the control database has no row in audit_chain')
    const verified: AuditVerified = { ...chain, rows: 0, broken: null }
    let last = { id: BigInt(chain.anchorId), hash: chain.anchorHash }
    while (!verified.broken) {
      const { rows } = await tx.query<{
        id: string
        at: Date
        previousHash: string
        hash: string
        changed: boolean
      }>(
        `SELECT e.id::text, e.at, encode(e."previousHash", 'hex') AS "previousHash", encode(e.hash, 'hex') AS hash,
                e.hash <> audit_event_hash(e) AS changed
           FROM audit_event e WHERE e.id > $1 ORDER BY e.id LIMIT $2`,
        [String(last.id), VERIFY_BATCH],
      )
      for (const row of rows) {
        const id = BigInt(row.id)
        if (row.previousHash !== last.hash && id > last.id + 1n)
          verified.broken = {
            kind: 'missing',
            eventId: String(last.id + 1n),
            lastId: String(id - 1n),
            at: null,
          }
        else if (row.changed)
          verified.broken = { kind: 'changed', eventId: row.id, lastId: row.id, at: row.at }
        else if (row.previousHash !== last.hash)
          verified.broken = { kind: 'replaced', eventId: row.id, lastId: row.id, at: row.at }
        if (verified.broken) break
        verified.rows++
        last = { id, hash: row.hash }
      }
      if (rows.length < VERIFY_BATCH) break
    }
    if (!verified.broken && (last.hash !== chain.headHash || String(last.id) !== chain.headId))
      verified.broken =
        last.id < BigInt(chain.headId)
          ? { kind: 'missing', eventId: String(last.id + 1n), lastId: chain.headId, at: null }
          : { kind: 'replaced', eventId: String(last.id), lastId: String(last.id), at: null }
    if (head === undefined) return verified
    if (head === chain.anchorHash) return { ...verified, known: { eventId: chain.anchorId, at: null } }
    const { rows: known } = await tx.query<{ eventId: string; at: Date }>(
      `SELECT e.id::text AS "eventId", e.at FROM audit_event e WHERE e.hash = decode($1, 'hex')`,
      [head],
    )
    return { ...verified, known: known[0] ?? null }
  })
}
