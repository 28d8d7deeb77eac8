import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackToInput } from './flashback.types'

/** Makes a table with the rows that another one had at a moment. */
export const to = operatorProcedure
  .input(FlashbackToInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'flashback-table', input, idempotencyKey }),
  )
