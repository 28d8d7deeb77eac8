import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackCompareInput } from './flashback.types'

/** Compares a result with its table. */
export const compare = operatorProcedure
  .input(FlashbackCompareInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'compare-flashback', input, idempotencyKey }),
  )
