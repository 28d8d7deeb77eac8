import {
  Fault,
  InstanceId,
  OperationId,
  OperationKind,
  OperationState,
  StepState,
  StepWork,
} from '@floe/domain'
import { z } from 'zod'

/** What every mutation answers at once; the operation itself is watched by `operation.watch`. */
export const OperationRef = z.object({ operationId: OperationId })
export type OperationRef = z.infer<typeof OperationRef>

/** Given by a caller who may repeat a request: the same key answers the same operation and starts nothing twice. */
export const IdempotencyKey = z.string().min(8).max(100)

/**
 * Moments are milliseconds since the epoch, here and in every procedure; `now` in an answer is the console’s clock, so
 * that ages are right in a browser whose clock is wrong.
 */
export const OperationSummary = z.object({
  operationId: OperationId,
  kind: OperationKind,
  title: z.string(),
  state: OperationState,
  instanceId: InstanceId.nullable(),
  instanceName: z.string().nullable(),
  hostName: z.string().nullable(),
  actor: z.string(),
  actorName: z.string(),
  createdAt: z.number(),
  startedAt: z.number().nullable(),
  endedAt: z.number().nullable(),
  cancelAskedAt: z.number().nullable(),
  /** 0 to 1; null where it cannot be known. */
  progress: z.number().nullable(),
  message: z.string().nullable(),
  fault: Fault.nullable(),
})
export type OperationSummary = z.infer<typeof OperationSummary>

export const OperationStep = z.object({
  position: z.number().int(),
  name: z.string(),
  title: z.string(),
  state: StepState,
  attempt: z.number().int(),
  startedAt: z.number().nullable(),
  endedAt: z.number().nullable(),
  deadlineAt: z.number().nullable(),
  progress: z.number().nullable(),
  message: z.string().nullable(),
  /** Bytes done, of how many, and the remaining time at the measured pace; null of a step that counts none. */
  work: StepWork.nullable(),
  fault: Fault.nullable(),
})
export type OperationStep = z.infer<typeof OperationStep>

export const OperationLogLine = z.object({
  id: z.number().int(),
  at: z.number(),
  step: z.string().nullable(),
  text: z.string(),
})
export type OperationLogLine = z.infer<typeof OperationLogLine>

export const OperationDetail = OperationSummary.extend({
  /** What was asked, without secrets. */
  input: z.record(z.string(), z.unknown()),
  result: z.record(z.string(), z.unknown()).nullable(),
  steps: z.array(OperationStep),
  /** True while a cancel may still be asked for. */
  cancellable: z.boolean(),
  /** True when it failed or was cancelled and nobody took it up again yet (operation.retry). */
  retryable: z.boolean(),
  /** The operation this one retries, and the one that retried this one. */
  retryOf: OperationId.nullable(),
  retriedBy: OperationId.nullable(),
})
export type OperationDetail = z.infer<typeof OperationDetail>

export const OperationCancelInput = z.object({ operationId: OperationId })

export const OperationListInput = z
  .object({
    instanceId: InstanceId.optional(),
    states: z.array(OperationState).optional(),
    limit: z.number().int().min(1).max(200).default(50),
    /** `nextCursor` of the page before. */
    cursor: z.string().max(80).optional(),
  })
  .default({ limit: 50 })
export const OperationList = z.object({
  /** Newest first. */
  operations: z.array(OperationSummary),
  nextCursor: z.string().nullable(),
  now: z.number(),
})

/** The new operation has the same input. */
export const OperationRetryInput = z.object({
  operationId: OperationId,
  idempotencyKey: IdempotencyKey.optional(),
})

export const OperationShowInput = z.object({
  operationId: OperationId,
  /** Log lines with a greater id; 0 reads from the start. */
  afterLogId: z.number().int().min(0).default(0),
})
export const OperationShow = z.object({
  operation: OperationDetail,
  log: z.array(OperationLogLine),
  now: z.number(),
})
export type OperationShow = z.infer<typeof OperationShow>

/** Each event is an OperationShow with the log lines not sent before; the stream ends when the operation has ended. */
export const OperationWatchInput = z.object({
  operationId: OperationId,
  /** Set by tRPC when it reconnects: the id of the last log line that arrived. */
  lastEventId: z.string().nullish(),
})
