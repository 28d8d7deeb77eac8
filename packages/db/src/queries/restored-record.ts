import { type Fault, type InDoubt, RestoredAccepted, RestoredEvidence } from '@floe/domain'
import type pg from 'pg'
import { inTransaction, type Queryable, type Transaction } from '../database'
import type { Actor } from './audit'
import { type LeaseHold, requireLease } from './lease'

/** What is in doubt, and not settled. */
export type RestoredRecord = InDoubt & {
  recordId: string
  /** Null: all of the control database. */
  clusterId: string | null
  foundAt: Date
  acceptedAs: RestoredAccepted | null
  acceptedByName: string | null
}

const restoredQuery = `
  SELECT r.id AS "recordId", r."clusterId", c.name AS "clusterName", r."foundAt", r.evidence, r."acceptedAs", r."acceptedByName"
    FROM restored_record r LEFT JOIN cluster c ON c.id = r."clusterId"
   WHERE r."settledAt" IS NULL`

type Row = Omit<RestoredRecord, 'evidence' | 'acceptedAs'> & { evidence: unknown; acceptedAs: unknown }

const restoredRecord = (row: Row): RestoredRecord => ({
  ...row,
  evidence: RestoredEvidence.safeParse(row.evidence).data ?? null,
  acceptedAs: RestoredAccepted.safeParse(row.acceptedAs).data ?? null,
})

/** Everything that is in doubt, the control database itself first, then clusters by name. */
export async function listRestoredRecords(on: Queryable): Promise<RestoredRecord[]> {
  const { rows } = await on.query<Row>(`${restoredQuery} ORDER BY c.name NULLS FIRST`)
  return rows.map(restoredRecord)
}

/** Why no operation on this instance, or on this cluster, may begin; undefined where one may. */
export async function readInDoubt(
  on: Queryable,
  about: { instanceId: string; clusterId?: string | null | undefined },
): Promise<InDoubt | undefined> {
  const { rows } = await on.query<Row>(
    `${restoredQuery}
       AND (r."clusterId" IS NULL OR r."clusterId" = $2 OR r."clusterId" = (SELECT "clusterId" FROM instance WHERE id = $1))
     ORDER BY r."clusterId" NULLS FIRST LIMIT 1`,
    [about.instanceId, about.clusterId ?? null],
  )
  return rows[0] && restoredRecord(rows[0])
}

/**
 * Notes that an agent knows of a newer primary of a cluster than is recorded; under the lease of its host's lane. What a person
 * has decided on is not noted again: the same promotion by whomever, and whatever this host has claimed up to then. Answers
 * whether it is new.
 */
export async function noteNewerPrimary(
  pool: pg.Pool,
  hold: LeaseHold,
  clusterId: string,
  evidence: Extract<RestoredEvidence, { kind: 'newer-primary' }>,
): Promise<boolean> {
  return inTransaction(pool, async (tx) => {
    await requireLease(tx, hold)
    const { rows } = await tx.query<{ created: boolean }>(
      `INSERT INTO restored_record AS r (id, "clusterId", evidence)
       SELECT gen_random_uuid(), $1, $2::jsonb
        WHERE NOT EXISTS (SELECT FROM restored_record d
               WHERE d."clusterId" = $1 AND d."acceptedAt" IS NOT NULL
                 AND (d.evidence->>'timeline' = $2::jsonb->>'timeline' AND d.evidence->>'primary' = $2::jsonb->>'primary'
                      OR d.evidence->>'hostId' = $2::jsonb->>'hostId'
                         AND (d.evidence->>'timeline')::int >= ($2::jsonb->>'timeline')::int))
       ON CONFLICT (coalesce("clusterId", '00000000-0000-0000-0000-000000000000'::uuid)) WHERE "settledAt" IS NULL
       DO UPDATE SET evidence = excluded.evidence
        WHERE r."acceptedAt" IS NULL AND (r.evidence->>'timeline')::int < (excluded.evidence->>'timeline')::int
       RETURNING (xmax = 0) AS created`,
      [clusterId, JSON.stringify(evidence)],
    )
    return rows[0]?.created ?? false
  })
}

/** Writes what a person decided; those that were decided on before stay as they are. Answers the ids of the others. */
export async function acceptRestoredRecords(
  tx: Transaction,
  recordIds: readonly string[],
  as: RestoredAccepted,
  actor: Actor,
): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    `UPDATE restored_record
        SET "acceptedAs" = $2, "acceptedAt" = clock_timestamp(), "acceptedBy" = $3, "acceptedByName" = $4
      WHERE id = ANY ($1) AND "acceptedAt" IS NULL RETURNING id`,
    [recordIds, as, actor.id, actor.name],
  )
  return rows.map((row) => row.id)
}

/** Notes that a decision was carried out, with what that was. */
export async function settleRestoredRecord(
  tx: Transaction,
  recordId: string,
  outcome: string,
): Promise<void> {
  await tx.query(
    `UPDATE restored_record SET "settledAt" = clock_timestamp(), outcome = $2 WHERE id = $1 AND "settledAt" IS NULL`,
    [recordId, outcome],
  )
}

/**
 * A decision that cannot be carried out is settled as such, and what it was about stays in doubt: a person has to decide
 * again. What was decided is nobody's to change.
 */
export async function reopenRestoredRecord(tx: Transaction, recordId: string, why: string): Promise<void> {
  await settleRestoredRecord(tx, recordId, why)
  await tx.query(
    `INSERT INTO restored_record (id, "clusterId", evidence)
     SELECT gen_random_uuid(), "clusterId", evidence FROM restored_record WHERE id = $1`,
    [recordId],
  )
}

/**
 * Ends operations that had not ended when the database was as it is: of a cluster, or all (null). What became of them is not
 * recorded. Answers how many.
 */
export async function endOpenOperations(
  tx: Transaction,
  clusterId: string | null,
  fault: Fault,
): Promise<number> {
  const { rows } = await tx.query<{ id: string }>(
    `UPDATE operation
        SET state = 'failed', "endedAt" = clock_timestamp(), fault = $2, message = NULL,
            "leaseOwner" = NULL, "leaseExpiresAt" = NULL, "leaseToken" = "leaseToken" + 1
      WHERE state IN ('queued', 'running', 'cancelling') AND ($1::uuid IS NULL OR "clusterId" = $1) RETURNING id`,
    [clusterId, JSON.stringify(fault)],
  )
  const ids = rows.map((row) => row.id)
  await tx.query(
    `UPDATE operation_step
        SET state = CASE WHEN state = 'running' THEN 'failed' ELSE 'cancelled' END,
            "endedAt" = CASE WHEN state = 'running' THEN clock_timestamp() END,
            fault = CASE WHEN state = 'running' THEN $2::jsonb END
      WHERE "operationId" = ANY ($1) AND state IN ('pending', 'running')`,
    [ids, JSON.stringify(fault)],
  )
  return ids.length
}
