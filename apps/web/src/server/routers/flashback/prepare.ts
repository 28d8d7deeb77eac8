import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackPrepareInput } from './flashback.types'

/** Gives a database the extension that `lost`, `activity` and all flashbacks need (`flashback.not_prepared`). */
export const prepare = operatorProcedure
  .input(FlashbackPrepareInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'prepare-flashback', input, idempotencyKey }),
  )
