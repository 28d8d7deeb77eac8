import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackBeforeDropInput } from './flashback.types'

/** Makes a table with the rows that one had just before it was dropped, truncated or rewritten. */
export const beforeDrop = operatorProcedure
  .input(FlashbackBeforeDropInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'flashback-dropped-table', input, idempotencyKey }),
  )
