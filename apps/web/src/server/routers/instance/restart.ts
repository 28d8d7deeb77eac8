import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceStopInput } from './stop.types'

/** Orders a stop and a start. */
export const restart = operatorProcedure
  .input(InstanceStopInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'restart-instance', input, idempotencyKey }),
  )
