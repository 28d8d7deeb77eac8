import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { KeptAsideDropInput } from './kept-aside.types'

/** Orders what was kept aside to be removed. Refused unless the instance's name was typed. */
export const drop = operatorProcedure
  .input(KeptAsideDropInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, name, ...input } }) =>
    submit(ctx, { kind: 'drop-kept-aside', input: { ...input, keptAside: name }, idempotencyKey }),
  )
