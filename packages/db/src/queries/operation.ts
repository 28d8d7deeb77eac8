import {
  Fault,
  type OperationKind,
  type OperationState,
  type StepState,
  type StepWork,
  verifierParts,
} from '@floe/domain'
import type { Queryable, Transaction } from '../database'
import { isOpen, isOpenReader } from './kinds-that-read'

export type OperationView = {
  operationId: string
  kind: OperationKind
  state: OperationState
  /** As asked, without verifiers of passwords. */
  input: Record<string, unknown>
  instance: { instanceId: string; name: string; hostId: string; hostName: string } | null
  actor: string
  actorName: string
  createdAt: Date
  startedAt: Date | null
  endedAt: Date | null
  cancelAskedAt: Date | null
  /** 0 to 1 over all steps; null until it started. */
  progress: number | null
  message: string | null
  result: Record<string, unknown> | null
  fault: Fault | null
  /** The operation this one retries, and the one that retried this one. */
  retryOf: string | null
  retriedBy: string | null
}

export type StepView = {
  position: number
  name: string
  title: string
  state: StepState
  attempt: number
  startedAt: Date | null
  endedAt: Date | null
  /** After this moment an incident is open as long as the step runs. */
  deadlineAt: Date | null
  progress: number | null
  message: string | null
  /** Bytes of a step that works through them; null in any other and while it has not reported. */
  work: StepWork | null
  result: Record<string, unknown> | null
  fault: Fault | null
}

export type OperationLogLine = { id: string; at: Date; step: string | null; text: string }

/** Their names are Floe's own words. */
const withoutVerifiers = `ARRAY[${verifierParts.map((part) => `'${part}'`).join(', ')}]`

const operationQuery = `
  SELECT o.id AS "operationId", o.kind, o.state, o.input - ${withoutVerifiers} AS input, o.actor, o."actorName",
         o."createdAt", o."startedAt", o."endedAt", o."cancelAskedAt", o.progress, o.message, o.result - 'replicationVerifier' AS result, o.fault,
         o."retryOf", (SELECT r.id FROM operation r WHERE r."retryOf" = o.id ORDER BY r."createdAt" LIMIT 1) AS "retriedBy",
         CASE WHEN i.id IS NOT NULL THEN
           json_build_object('instanceId', i.id, 'name', i.name, 'hostId', h.id, 'hostName', h.name) END AS instance
    FROM operation o
    LEFT JOIN instance i ON i.id = o."instanceId"
    LEFT JOIN host h ON h.id = i."hostId"`

const parseFault = (value: unknown): Fault | null => {
  const parsed = Fault.safeParse(value)
  return parsed.success ? parsed.data : null
}
const operationView = (row: OperationView): OperationView => ({ ...row, fault: parseFault(row.fault) })

/** Operations, newest first. `before` is `createdAt` and id of the last one already seen. */
export async function listOperations(
  on: Queryable,
  input: {
    instanceId?: string | undefined
    states?: readonly OperationState[] | undefined
    before?: { createdAt: Date; operationId: string } | undefined
    limit?: number | undefined
  } = {},
): Promise<OperationView[]> {
  const { rows } = await on.query<OperationView>(
    `${operationQuery}
      WHERE ($1::uuid IS NULL OR o."instanceId" = $1)
        AND ($2::text[] IS NULL OR o.state = ANY ($2))
        AND ($3::timestamptz IS NULL OR (o."createdAt", o.id) < ($3, $4::uuid))
      ORDER BY o."createdAt" DESC, o.id DESC LIMIT $5`,
    [
      input.instanceId ?? null,
      input.states ?? null,
      input.before?.createdAt ?? null,
      input.before?.operationId ?? null,
      input.limit ?? 50,
    ],
  )
  return rows.map(operationView)
}

/** One operation with its steps in order; undefined when there is none. */
export async function showOperation(
  on: Queryable,
  operationId: string,
): Promise<(OperationView & { steps: StepView[] }) | undefined> {
  const { rows } = await on.query<OperationView>(`${operationQuery} WHERE o.id = $1`, [operationId])
  const row = rows[0]
  if (!row) return undefined
  const steps = await on.query<StepView>(
    `SELECT position, name, title, state, attempt, "startedAt", "endedAt", "deadlineAt", progress, message,
            CASE WHEN "doneBytes" IS NOT NULL THEN
              json_build_object('doneBytes', "doneBytes", 'totalBytes', "totalBytes", 'remainingMs', "remainingMs") END AS work,
            result - 'replicationVerifier' AS result, fault
       FROM operation_step WHERE "operationId" = $1 ORDER BY position`,
    [operationId],
  )
  return {
    ...operationView(row),
    steps: steps.rows.map((step) => ({ ...step, fault: parseFault(step.fault) })),
  }
}

/** Log lines after an id, oldest first; `0` reads from the start. */
export async function readOperationLog(
  on: Queryable,
  input: { operationId: string; afterId?: string | undefined; limit?: number | undefined },
): Promise<OperationLogLine[]> {
  const { rows } = await on.query<OperationLogLine>(
    `SELECT l.id::text, l.at, l.step, l.text FROM operation_log l
      WHERE l."operationId" = $1 AND l.id > $2::bigint ORDER BY l.id LIMIT $3`,
    [input.operationId, input.afterId ?? '0', input.limit ?? 1_000],
  )
  return rows
}

export type OperationOfKey = {
  operationId: string
  kind: OperationKind
  input: Record<string, unknown>
  actor: string
  clusterId: string | null
  /** Host of its instance. */
  hostId: string | null
  retryOf: string | null
}

/** The operation with this idempotency key, undefined when there is none. */
export async function findOperationByKey(
  on: Queryable,
  idempotencyKey: string,
): Promise<OperationOfKey | undefined> {
  const { rows } = await on.query<OperationOfKey>(
    `SELECT o.id AS "operationId", o.kind, o.input, o.actor, o."clusterId", o."retryOf", i."hostId"
       FROM operation o LEFT JOIN instance i ON i.id = o."instanceId" WHERE o."idempotencyKey" = $1`,
    [idempotencyKey],
  )
  return rows[0]
}

/** The operation on an instance or its cluster that has not ended and that others wait for, undefined when there is none. */
export async function findOpenOperation(
  on: Queryable,
  instanceId: string,
): Promise<
  { operationId: string; kind: OperationKind; state: OperationState; instanceId: string } | undefined
> {
  const { rows } = await on.query(
    `SELECT id AS "operationId", kind, state, "instanceId" FROM operation
      WHERE ("instanceId" = $1 OR "clusterId" = (SELECT i."clusterId" FROM instance i WHERE i.id = $1))
        AND ${isOpen()}`,
    [instanceId],
  )
  return rows[0]
}

/**
 * How many operations on an instance have not ended that only read. A caller that counts them in order to add one comes after
 * everybody else who does.
 */
export async function countOpenReaders(tx: Transaction, instanceId: string): Promise<number> {
  await tx.query('SELECT FROM instance WHERE id = $1 FOR NO KEY UPDATE', [instanceId])
  const { rows } = await tx.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM operation WHERE "instanceId" = $1 AND ${isOpenReader()}`,
    [instanceId],
  )
  return rows[0]?.n ?? 0
}

/**
 * Turns an open fast stop or restart into an immediate one, whichever step it is at. False when it is none, is one
 * already, or has ended.
 */
export async function escalateOperation(on: Queryable, operationId: string): Promise<boolean> {
  const { rows } = await on.query<{ hastened: boolean }>('SELECT hasten_operation($1) AS hastened', [
    operationId,
  ])
  return rows[0]?.hastened ?? false
}

/** Inserts a queued operation. Throws a unique violation on a used idempotency key or where one is open on the instance. */
export async function insertOperation(
  on: Queryable,
  operation: {
    operationId: string
    kind: OperationKind
    input: unknown
    instanceId: string
    actor: { id: string; name: string }
    idempotencyKey: string | null
    retryOf: string | null
  },
): Promise<void> {
  await on.query(
    `INSERT INTO operation (id, kind, input, "instanceId", actor, "actorName", "idempotencyKey", "retryOf")
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      operation.operationId,
      operation.kind,
      JSON.stringify(operation.input),
      operation.instanceId,
      operation.actor.id,
      operation.actor.name,
      operation.idempotencyKey,
      operation.retryOf,
    ],
  )
}

/**
 * Asks an operation to give up: a queued one is cancelled at once, a running one becomes `cancelling` (trigger
 * operation_cancel_asked). Answers the state it is in afterwards, undefined when there is no such operation. Asking twice changes nothing.
 */
export async function askToCancel(on: Queryable, operationId: string): Promise<OperationState | undefined> {
  const { rows } = await on.query<{ state: OperationState }>(
    `UPDATE operation SET "cancelAskedAt" = now() WHERE id = $1 AND state IN ('queued', 'running') RETURNING state`,
    [operationId],
  )
  if (rows[0]) return rows[0].state
  const found = await on.query<{ state: OperationState }>(`SELECT state FROM operation WHERE id = $1`, [
    operationId,
  ])
  return found.rows[0]?.state
}

/** Holds an operation as it is until the end of the transaction: no pass of its controller begins or ends a step meanwhile. */
export async function lockOperation(tx: Transaction, operationId: string): Promise<void> {
  await tx.query(`SELECT FROM operation WHERE id = $1 FOR NO KEY UPDATE`, [operationId])
}

/** How far a step of an operation is; `overdue` when it, or the one that runs now, is past its deadline. */
export async function readStepForCancel(
  on: Queryable,
  operationId: string,
  name: string,
): Promise<{ state: StepState; title: string; overdue: boolean } | undefined> {
  const { rows } = await on.query<{ state: StepState; title: string; overdue: boolean }>(
    `SELECT s.state, s.title,
            EXISTS (SELECT 1 FROM operation_step r
                     WHERE r."operationId" = s."operationId" AND r.state = 'running' AND r."deadlineAt" < now()) AS overdue
       FROM operation_step s WHERE s."operationId" = $1 AND s.name = $2`,
    [operationId, name],
  )
  return rows[0]
}

/** What a retry needs of an operation, undefined when there is none. */
export async function readOperationForRetry(on: Queryable, operationId: string) {
  const { rows } = await on.query<{
    kind: OperationKind
    state: OperationState
    input: unknown
    instanceId: string | null
    retriedBy: string | null
    fault: Fault | null
  }>(
    `SELECT kind, state, input, "instanceId", fault,
            (SELECT r.id FROM operation r WHERE r."retryOf" = o.id ORDER BY r."createdAt" LIMIT 1) AS "retriedBy"
       FROM operation o WHERE id = $1`,
    [operationId],
  )
  return rows[0]
}

/**
 * Whether what an operation was to create was created by another try, or its instance was deleted: then the verifier of
 * its password is gone (trigger operation_verifier_removed).
 */
export async function isCreationOver(on: Queryable, operationId: string): Promise<boolean> {
  const { rows } = await on.query<{ over: boolean }>(
    `WITH RECURSIVE tried (id, "retryOf", "instanceId", state) AS (
       SELECT o.id, o."retryOf", o."instanceId", o.state FROM operation o WHERE o.id = $1
       UNION
       SELECT o.id, o."retryOf", o."instanceId", o.state
         FROM operation o JOIN tried t ON o.id = t."retryOf" OR o."retryOf" = t.id)
     SELECT EXISTS (SELECT FROM tried t WHERE t.state = 'succeeded' OR EXISTS (
              SELECT FROM operation d WHERE d."instanceId" = t."instanceId" AND d.kind = 'delete-instance'
                 AND d.state = 'succeeded')) AS over`,
    [operationId],
  )
  return rows[0]?.over ?? false
}
