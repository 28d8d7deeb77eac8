import type { ClusterObserved, Fault, InstanceId, WalPosition } from '@floe/domain'
import type { StepContext, StepRecord } from './step'
import { NOT_STARTED } from './task-step'

/** That a member is about to be promoted by this step; `from`: what it holds then. */
export const promotionBegun = (
  context: { operationId: string; step: StepContext['step'] },
  { clusterId }: ClusterObserved,
  instanceId: InstanceId,
  from: WalPosition | null,
): StepRecord => ({
  kind: 'promotion-begun',
  clusterId,
  promotion: {
    instanceId,
    operationId: context.operationId,
    step: context.step.name,
    attempt: context.step.attempt,
    from,
  },
})

/** A fault that says for certain that the promotion did not take place, and will not: silence says nothing. */
export const isRefuted = ({ code, detail }: Fault): boolean =>
  code === 'promote.behind' ||
  code === 'promote.not_begun' ||
  code === 'promote.not_told' ||
  (code === 'task.cancelled' && detail === NOT_STARTED)

/** The same fault where an attempt before it may have promoted the member all the same. */
export const doubtful = (fault: Fault): Fault => ({
  ...fault,
  code: 'promote.unsettled',
  hint: 'Whether it was promoted is unknown. Fail over to it or to another standby.',
})

/** A promotion that failed is only settled where its fault says so. */
export const promotionRefuted = (
  fault: Fault,
  { operationId }: { operationId: string },
  { clusterId }: ClusterObserved,
): StepRecord[] => (isRefuted(fault) ? [{ kind: 'promotion-settled', clusterId, operationId }] : [])
