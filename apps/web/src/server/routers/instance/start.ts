import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceStartInput } from './start.types'

/** Orders a start; it succeeds once the instance answers SQL. */
export const start = operatorProcedure
  .input(InstanceStartInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'start-instance', input, idempotencyKey }),
  )
