import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceDeleteInput } from './delete.types'

/** Orders the end of an instance and its files. Refused unless its name was typed. */
export const remove = operatorProcedure
  .input(InstanceDeleteInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'delete-instance', input, idempotencyKey }),
  )
