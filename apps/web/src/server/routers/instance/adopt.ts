import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceStartInput } from './start.types'

/** Has its host's agent know an instance again that it has lost, and take over its engine without a restart. */
export const adopt = operatorProcedure
  .input(InstanceStartInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'adopt-instance', input, idempotencyKey }),
  )
