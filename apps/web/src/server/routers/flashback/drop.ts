import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackDropInput } from './flashback.types'

/** Drops a result. */
export const drop = operatorProcedure
  .input(FlashbackDropInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'drop-flashback', input, idempotencyKey }),
  )
