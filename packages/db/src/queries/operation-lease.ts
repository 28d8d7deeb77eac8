import type { OperationKind, OperationState, StepState } from '@floe/domain'
import type pg from 'pg'
import { inTransaction, type Queryable, type Transaction } from '../database'
import { LEASE_ENDS_NOW, LeaseLostError } from './lease'

/** Proof that this controller may move the operation; a write with an older token is refused. */
export type OperationHold = { operationId: string; owner: string; token: string }

/** False for operations on what is older than the fleet (restored_record): nobody begins them, or goes on with them. */
const notReadOnly = `NOT EXISTS (SELECT FROM restored_record r
            WHERE r."settledAt" IS NULL AND (r."clusterId" IS NULL OR r."clusterId" = o."clusterId"))`

/**
 * Leases operations that nobody moves: queued ones of hosts that are not busy, oldest first, and those whose controller is
 * gone. Several controllers asking at once get different ones.
 */
export async function leaseOperations(
  on: Queryable,
  input: { owner: string; leaseMs: number; limit: number; busyHostIds: readonly string[] },
): Promise<(OperationHold & { hostId: string })[]> {
  const { rows } = await on.query<OperationHold & { hostId: string }>(
    `UPDATE operation
        SET "leaseOwner" = $1, "leaseToken" = "leaseToken" + 1,
            "leaseExpiresAt" = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
      WHERE id IN (
        SELECT o.id FROM operation o JOIN instance i ON i.id = o."instanceId"
         WHERE o.state IN ('queued', 'running', 'cancelling')
           AND (o."leaseExpiresAt" IS NULL OR o."leaseExpiresAt" <= clock_timestamp())
           AND (o.state <> 'queued' OR i."hostId" <> ALL ($4::uuid[]))
           AND ${notReadOnly}
         ORDER BY o."createdAt" LIMIT $3 FOR UPDATE OF o SKIP LOCKED)
     RETURNING id AS "operationId", "leaseOwner" AS owner, "leaseToken"::text AS token,
       (SELECT i."hostId" FROM instance i WHERE i.id = operation."instanceId") AS "hostId"`,
    [input.owner, input.leaseMs, input.limit, input.busyHostIds],
  )
  return rows
}

/** Prolongs leases; answers the ids of those still held. */
export async function renewOperationLeases(
  on: Queryable,
  holds: readonly OperationHold[],
  leaseMs: number,
): Promise<Set<string>> {
  const { rows } = await on.query<{ id: string }>(
    `UPDATE operation o SET "leaseExpiresAt" = clock_timestamp() + make_interval(secs => $1::float8 / 1000)
       FROM jsonb_to_recordset($2::jsonb) AS h ("operationId" uuid, owner text, token bigint)
      WHERE o.id = h."operationId" AND o."leaseOwner" = h.owner AND o."leaseToken" = h.token
        AND o.state IN ('queued', 'running', 'cancelling') AND ${notReadOnly}
     RETURNING o.id`,
    [leaseMs, JSON.stringify(holds)],
  )
  return new Set(rows.map((row) => row.id))
}

/** Gives leases back, so that another controller goes on at once. */
export async function releaseOperationLeases(on: Queryable, holds: readonly OperationHold[]): Promise<void> {
  await on.query(
    `UPDATE operation o SET "leaseExpiresAt" = ${LEASE_ENDS_NOW}
       FROM jsonb_to_recordset($1::jsonb) AS h ("operationId" uuid, owner text, token bigint)
      WHERE o.id = h."operationId" AND o."leaseOwner" = h.owner AND o."leaseToken" = h.token`,
    [JSON.stringify(holds)],
  )
}

export type LeasedOperation = {
  operationId: string
  kind: OperationKind
  state: OperationState
  input: unknown
  instanceId: string
  instanceName: string
  hostId: string
  hostName: string
  /** State of the last report, null when there was none yet. */
  observedState: string | null
  retryOf: string | null
  cancelAskedAt: Date | null
  steps: LeasedStep[]
}
export type LeasedStep = {
  position: number
  name: string
  title: string
  state: StepState
  attempt: number
  startedAt: Date | null
  deadlineAt: Date | null
  progress: number | null
  message: string | null
  doneBytes: number | null
  totalBytes: number | null
  remainingMs: number | null
  result: Record<string, unknown> | null
  taskLogSeq: number
}

/** The operation with its steps as they are now; throws LeaseLostError unless the hold is the newest. */
export async function readLeasedOperation(on: Queryable, hold: OperationHold): Promise<LeasedOperation> {
  const { rows } = await on.query<LeasedOperation>(
    `SELECT o.id AS "operationId", o.kind, o.state, o.input, o."instanceId", i.name AS "instanceName", i."hostId",
            h.name AS "hostName", CASE WHEN i."observedAt" IS NOT NULL THEN i.state END AS "observedState", o."retryOf", o."cancelAskedAt",
            coalesce((SELECT json_agg(json_build_object('position', s.position, 'name', s.name, 'title', s.title,
                        'state', s.state, 'attempt', s.attempt, 'startedAt', s."startedAt", 'deadlineAt', s."deadlineAt",
                        'progress', s.progress, 'message', s.message, 'doneBytes', s."doneBytes",
                        'totalBytes', s."totalBytes", 'remainingMs', s."remainingMs", 'result', s.result, 'taskLogSeq', s."taskLogSeq") ORDER BY s.position)
                        FROM operation_step s WHERE s."operationId" = o.id), '[]') AS steps
       FROM operation o JOIN instance i ON i.id = o."instanceId" JOIN host h ON h.id = i."hostId"
      WHERE o.id = $1 AND o."leaseOwner" = $2 AND o."leaseToken" = $3`,
    [hold.operationId, hold.owner, hold.token],
  )
  const row = rows[0]
  if (!row) throw new LeaseLostError(`operation ${hold.operationId}`)
  const moment = (value: unknown) => (typeof value === 'string' ? new Date(value) : null)
  return {
    ...row,
    steps: row.steps.map((s) => ({ ...s, startedAt: moment(s.startedAt), deadlineAt: moment(s.deadlineAt) })),
  }
}

/**
 * Runs `body` in a transaction that holds the operation's row, so that nobody can lease or cancel it meanwhile. Throws
 * LeaseLostError, having written nothing, when a newer lease exists. `state` is the operation's state at this moment.
 */
export async function withOperationHold<T>(
  pool: pg.Pool,
  hold: OperationHold,
  body: (tx: Transaction, state: OperationState) => Promise<T>,
): Promise<T> {
  return inTransaction(pool, async (tx) => {
    const { rows } = await tx.query<{ state: OperationState }>(
      `SELECT state FROM operation WHERE id = $1 AND "leaseOwner" = $2 AND "leaseToken" = $3 FOR UPDATE`,
      [hold.operationId, hold.owner, hold.token],
    )
    if (!rows[0]) throw new LeaseLostError(`operation ${hold.operationId}`)
    return body(tx, rows[0].state)
  })
}

export type PlannedStepRow = {
  name: string
  title: string
  state: 'pending' | 'succeeded'
  attempt: number
  result: unknown
}

/** Writes the steps of an operation, once. */
export async function insertSteps(tx: Transaction, operationId: string, steps: readonly PlannedStepRow[]) {
  await tx.query(
    `INSERT INTO operation_step ("operationId", position, name, title, state, attempt, result, "startedAt", "endedAt")
     SELECT $1, (ordinality - 1)::int, s->>'name', s->>'title', s->>'state', (s->>'attempt')::int, nullif(s->'result', 'null'),
            CASE WHEN s->>'state' = 'succeeded' THEN now() END, CASE WHEN s->>'state' = 'succeeded' THEN now() END
       FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS e (s, ordinality)`,
    [operationId, JSON.stringify(steps)],
  )
}

/** Steps of an ended operation, for the one that takes it up again. */
export async function readEndedSteps(
  on: Queryable,
  operationId: string,
): Promise<{ name: string; state: StepState; attempt: number; result: unknown }[]> {
  const { rows } = await on.query(
    `SELECT name, state, attempt, result FROM operation_step WHERE "operationId" = $1 ORDER BY position`,
    [operationId],
  )
  return rows
}

export type StepChange = {
  state?: StepState
  startedAt?: Date
  endedAt?: Date
  deadlineAt?: Date
  progress?: number | null
  message?: string | null
  doneBytes?: number
  totalBytes?: number | null
  remainingMs?: number | null
  result?: unknown
  fault?: unknown
  taskLogSeq?: number
  attempt?: number
}
export type OperationChange = {
  state?: OperationState
  startedAt?: Date
  endedAt?: Date
  progress?: number | null
  message?: string | null
  result?: unknown
  fault?: unknown
}

const jsonColumns = new Set(['result', 'fault'])
function assignments(change: object, parameters: unknown[]): string {
  return Object.entries(change)
    .map(([column, value]) => {
      parameters.push(jsonColumns.has(column) && value !== null ? JSON.stringify(value) : value)
      return `"${column}" = $${parameters.length}`
    })
    .join(', ')
}

/** Changes columns of a step; inside withOperationHold. */
export async function updateStep(tx: Transaction, operationId: string, position: number, change: StepChange) {
  const parameters: unknown[] = [operationId, position]
  const set = assignments(change, parameters)
  if (set)
    await tx.query(`UPDATE operation_step SET ${set} WHERE "operationId" = $1 AND position = $2`, parameters)
}

/** Changes columns of an operation; inside withOperationHold. */
export async function updateOperation(tx: Transaction, operationId: string, change: OperationChange) {
  const parameters: unknown[] = [operationId]
  const set = assignments(change, parameters)
  if (set) await tx.query(`UPDATE operation SET ${set} WHERE id = $1`, parameters)
}

/** Marks the steps that will not run any more. */
export async function cancelPendingSteps(tx: Transaction, operationId: string) {
  await tx.query(
    `UPDATE operation_step SET state = 'cancelled' WHERE "operationId" = $1 AND state = 'pending'`,
    [operationId],
  )
}

/** Appends lines to an operation's log; inside withOperationHold. */
export async function appendOperationLog(
  tx: Transaction,
  operationId: string,
  lines: readonly { at?: number; step: string | null; text: string }[],
) {
  if (lines.length === 0) return
  await tx.query(
    `INSERT INTO operation_log ("operationId", at, step, text)
     SELECT $1, coalesce(to_timestamp(at / 1000), clock_timestamp()), step, text
       FROM jsonb_to_recordset($2::jsonb) AS l (at float8, step text, text text)`,
    [operationId, JSON.stringify(lines)],
  )
}
