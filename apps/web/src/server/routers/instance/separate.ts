import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceStartInput } from './start.types'

/** Gives an instance that shares a user of the operating system with others one of its own; one that runs is restarted. */
export const separate = operatorProcedure
  .input(InstanceStartInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'separate-instance', input, idempotencyKey }),
  )
