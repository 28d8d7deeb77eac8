import type { Fault, HostFacts, InstanceState, MemberRole } from '@floe/domain'
import type pg from 'pg'
import { inTransaction, type Queryable } from '../database'
import { kindsThatMake } from './kinds-that-make'
import { isOpen } from './kinds-that-read'
import { type LeaseHold, LeaseLostError, requireLease } from './lease'

/** What a report says of an instance, as far as it is stored in columns; `observed` is all of it. */
export type ObservedInstance = {
  instanceId: string
  state: InstanceState
  because: string | null
  role: string | null
  engineVersion: string | null
  systemIdentifier: string | null
  port: number
  observed: unknown
}

export type KnownInstance = {
  instanceId: string
  name: string
  /** As it was before this report. */
  state: InstanceState
  /** True once a report has named it. */
  seen: boolean
  deleted: boolean
  /** True where it was deleted long enough ago that a report which still names it is not just an old one. */
  deletedBefore: boolean
  /** True once an operation created or adopted it, and while one that has not ended works on it. */
  created: boolean
  busy: boolean
  /** What it is meant to be in its cluster, and since when it is to be fenced where its host was out of reach. */
  memberRole: MemberRole
  fenceOrderedAt: Date | null
  /** The newest timeline that this order is about; null where it was given without one. */
  fenceTimeline: number | null
  /** Why its agent refuses to carry the order out, since it was given. */
  fenceRefusal: Fault | null
  clusterId: string | null
  /** ClusterHoldings of its cluster, as stored. */
  holdings: string | null
}

/**
 * Writes a report: the host's facts and every instance of it that has a row, all in one transaction under the lease of
 * the host's lane. Answers the instances of this host as they were before, so that the caller can see what moved.
 */
export async function writeReport(
  pool: pg.Pool,
  hold: LeaseHold,
  report: { hostId: string; facts: HostFacts; instances: readonly ObservedInstance[] },
): Promise<KnownInstance[]> {
  return inTransaction(pool, async (tx) => {
    await requireLease(tx, hold)
    const { rows } = await tx.query<KnownInstance>(
      `SELECT id AS "instanceId", name, state, "observedAt" IS NOT NULL AS seen, "deletedAt" IS NOT NULL AS deleted,
              coalesce("deletedAt" < clock_timestamp() - interval '15 seconds', false) AS "deletedBefore",
              EXISTS (SELECT 1 FROM operation o WHERE o."instanceId" = instance.id
                         AND o.kind IN (${kindsThatMake('new', 'adopted')})
                         AND o.state = 'succeeded') AS created,
              EXISTS (SELECT 1 FROM operation o WHERE o."clusterId" = instance."clusterId"
                         AND ${isOpen('o.')}) AS busy,
              "memberRole", "fenceOrderedAt", "fenceTimeline", "clusterId",
              (SELECT c.holdings::text FROM cluster c WHERE c.id = "clusterId") AS holdings,
              CASE WHEN "fenceOrderedAt" IS NOT NULL THEN
                (SELECT s.fault FROM operation o JOIN operation_step s ON s."operationId" = o.id
                  WHERE o."instanceId" = instance.id AND o.kind = 'fence-instance' AND o."createdAt" > "fenceOrderedAt"
                    AND s.fault->>'code' = 'fence.newer_timeline' LIMIT 1) END AS "fenceRefusal"
         FROM instance WHERE "hostId" = $1 ORDER BY id FOR NO KEY UPDATE`,
      [report.hostId],
    )
    const { rowCount } = await tx.query(
      `UPDATE host SET "observedAt" = clock_timestamp(), facts = $2, fault = NULL
        WHERE id = $1 AND "revokedAt" IS NULL AND "removedAt" IS NULL`,
      [report.hostId, JSON.stringify(report.facts)],
    )
    // revoked while it answered: the answer is not believed, and its lane is about to end
    if (rowCount === 0) throw new LeaseLostError(`host ${report.hostId}`)
    await tx.query(
      `UPDATE instance i
          SET "observedAt" = clock_timestamp(), state = o.state, because = o.because, role = o.role,
              "engineVersion" = o."engineVersion", "systemIdentifier" = o."systemIdentifier", port = o.port,
              observed = o.observed
         FROM jsonb_to_recordset($2::jsonb) AS o ("instanceId" uuid, state text, because text, role text,
                "engineVersion" text, "systemIdentifier" text, port int, observed jsonb)
        WHERE i.id = o."instanceId" AND i."hostId" = $1 AND i."deletedAt" IS NULL`,
      [report.hostId, JSON.stringify(report.instances)],
    )
    return rows
  })
}

/** Writes what the agent said of itself. */
export async function writeHello(
  pool: pg.Pool,
  hold: LeaseHold,
  hello: { hostId: string; agentVersion: string; contractVersion: string; capabilities: readonly string[] },
): Promise<void> {
  await inTransaction(pool, async (tx) => {
    await requireLease(tx, hold)
    await tx.query(
      `UPDATE host SET "agentVersion" = $2, "contractVersion" = $3, capabilities = $4 WHERE id = $1`,
      [hello.hostId, hello.agentVersion, hello.contractVersion, hello.capabilities],
    )
  })
}

/** Writes why a host could not be reached; its last observation keeps its age. */
export async function writeHostFault(
  pool: pg.Pool,
  hold: LeaseHold,
  hostId: string,
  fault: Fault,
): Promise<void> {
  await inTransaction(pool, async (tx) => {
    await requireLease(tx, hold)
    await tx.query(
      `UPDATE host SET fault = $2 WHERE id = $1 AND "revokedAt" IS NULL AND fault IS DISTINCT FROM $2::jsonb`,
      [hostId, JSON.stringify(fault)],
    )
  })
}

/** What is stored of an instance's last report; `postmasterPid` and the rest are null where it never was in one. */
export async function readObservation(on: Queryable, instanceId: string) {
  const { rows } = await on.query<{
    state: InstanceState
    because: string | null
    postmasterPid: number | null
    directory: string | null
    observedAt: Date | null
  }>(
    `SELECT state, because, (observed->>'postmasterPid')::int AS "postmasterPid", observed->>'directory' AS directory,
            "observedAt" FROM instance WHERE id = $1`,
    [instanceId],
  )
  return (
    rows[0] ?? {
      state: 'unknown' as const,
      because: null,
      postmasterPid: null,
      directory: null,
      observedAt: null,
    }
  )
}

/** An instance that its agent no longer names: unknown, and why. What was last seen of it keeps its age. */
export async function writeInstanceMissing(
  pool: pg.Pool,
  hold: LeaseHold,
  instanceId: string,
  because: string,
): Promise<void> {
  await inTransaction(pool, async (tx) => {
    await requireLease(tx, hold)
    await tx.query(
      `UPDATE instance SET state = 'unknown', because = $2
        WHERE id = $1 AND "deletedAt" IS NULL AND (state, because) IS DISTINCT FROM ('unknown', $2)`,
      [instanceId, because],
    )
  })
}

/** Marks an instance as gone (the rest does trigger instance_deleted); in the transaction that ends its delete operation. */
export async function markInstanceDeleted(on: Queryable, instanceId: string): Promise<void> {
  await on.query(
    `UPDATE instance SET "deletedAt" = clock_timestamp(), because = 'it was deleted'
      WHERE id = $1 AND "deletedAt" IS NULL`,
    [instanceId],
  )
}

/**
 * Marks an instance as gone whose host could not be asked; it is to be fenced should its agent name it again. Where it was
 * promoted after that, by whomever, it is on a later timeline than any member of its cluster now.
 */
export async function markInstanceLeft(on: Queryable, instanceId: string): Promise<void> {
  await markInstanceDeleted(on, instanceId)
  await on.query(
    `UPDATE instance i
        SET "fenceOrderedAt" = clock_timestamp(),
            "fenceTimeline" = coalesce((SELECT max((m.observed->>'timeline')::int) FROM instance m
                                         WHERE m."clusterId" = i."clusterId"), 1)
      WHERE i.id = $1`,
    [instanceId],
  )
}

/** Marks the instance as gone that an operation was to make and has not begun to; one that anything else worked on stays. */
export async function markNeverMade(on: Queryable, operationId: string): Promise<void> {
  await on.query(
    `UPDATE instance i SET "deletedAt" = clock_timestamp()
       FROM operation o
      WHERE o.id = $1 AND o.kind IN (${kindsThatMake('new')}) AND i.id = o."instanceId" AND i."deletedAt" IS NULL
        AND NOT EXISTS (SELECT FROM operation other WHERE other."instanceId" = i.id AND other.id <> o.id)`,
    [operationId],
  )
}
