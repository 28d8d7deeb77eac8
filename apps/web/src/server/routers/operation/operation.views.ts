import type { OperationView, StepView, OperationLogLine as StoredLogLine } from '@floe/db'
import { type InstanceId, type OperationId, operationRecord } from '@floe/domain'
import type { OperationDetail, OperationLogLine, OperationStep, OperationSummary } from './operation.types'

/** A moment as the API says it. */
export const ms = (date: Date | null): number | null => (date === null ? null : date.getTime())

export function operationSummary(o: OperationView): OperationSummary {
  return {
    operationId: o.operationId as OperationId,
    kind: o.kind,
    title: operationRecord(o.kind).title,
    state: o.state,
    instanceId: (o.instance?.instanceId ?? null) as InstanceId | null,
    instanceName: o.instance?.name ?? null,
    hostName: o.instance?.hostName ?? null,
    actor: o.actor,
    actorName: o.actorName,
    createdAt: o.createdAt.getTime(),
    startedAt: ms(o.startedAt),
    endedAt: ms(o.endedAt),
    cancelAskedAt: ms(o.cancelAskedAt),
    progress: o.progress,
    message: o.message,
    fault: o.fault,
  }
}

export function operationDetail(o: OperationView & { steps: StepView[] }): OperationDetail {
  return {
    ...operationSummary(o),
    input: o.input,
    result: o.result,
    steps: o.steps.map(operationStep),
    cancellable: o.state === 'queued' || (o.state === 'running' && !isPastNoReturn(o)),
    retryable:
      (o.state === 'failed' || o.state === 'cancelled') &&
      o.retriedBy === null &&
      o.fault?.code !== 'operation.not_continued',
    retryOf: o.retryOf as OperationId | null,
    retriedBy: o.retriedBy as OperationId | null,
  }
}

/** As operation.cancel judges it: a promotion that began goes through, unless a step is overdue. */
function isPastNoReturn(o: OperationView & { steps: StepView[] }): boolean {
  const begun = o.steps.some(
    (s) => s.name === operationRecord(o.kind).pointOfNoReturn && s.state !== 'pending',
  )
  const overdue = o.steps.some(
    (s) => s.state === 'running' && s.deadlineAt !== null && s.deadlineAt.getTime() < Date.now(),
  )
  return begun && !overdue
}

const operationStep = (s: StepView): OperationStep => ({
  position: s.position,
  name: s.name,
  title: s.title,
  state: s.state,
  attempt: s.attempt,
  startedAt: ms(s.startedAt),
  endedAt: ms(s.endedAt),
  deadlineAt: ms(s.deadlineAt),
  progress: s.progress,
  message: s.message,
  work: s.work,
  fault: s.fault,
})

export const operationLogLine = (l: StoredLogLine): OperationLogLine => ({
  id: Number(l.id),
  at: l.at.getTime(),
  step: l.step,
  text: l.text,
})
