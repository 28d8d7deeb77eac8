import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceStartInput } from './start.types'

/** Orders the configuration files to be read again. */
export const reload = operatorProcedure
  .input(InstanceStartInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'reload-instance', input, idempotencyKey }),
  )
