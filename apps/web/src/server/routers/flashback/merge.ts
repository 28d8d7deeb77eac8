import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackMergeInput } from './flashback.types'

/** Puts rows of a result back into its table, or counts them. */
export const merge = operatorProcedure
  .input(FlashbackMergeInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'merge-flashback', input, idempotencyKey }),
  )
