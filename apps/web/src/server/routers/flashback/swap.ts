import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackSwapInput } from './flashback.types'

/** Exchanges the rows of a table and a result. Refused unless the instance’s name was typed. */
export const swap = operatorProcedure
  .input(FlashbackSwapInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'swap-flashback', input, idempotencyKey }),
  )
