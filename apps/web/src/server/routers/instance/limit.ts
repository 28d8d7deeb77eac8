import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceLimitInput } from './instance.types'

/**
 * Orders other limits of an instance: set at once where it runs, and for every start. Throws `operation.conflict`, or why it
 * cannot have them (`limit.out_of_range`, `limit.high_above_max`, …).
 */
export const limit = operatorProcedure
  .input(InstanceLimitInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { instanceId, changes, reason, idempotencyKey } }) =>
    submit(ctx, { kind: 'limit-instance', input: { instanceId, changes, reason }, idempotencyKey }),
  )
