import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceStopInput } from './stop.types'

/** Orders a stop. */
export const stop = operatorProcedure
  .input(InstanceStopInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'stop-instance', input, idempotencyKey }),
  )
