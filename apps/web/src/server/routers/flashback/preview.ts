import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackPreviewInput } from './flashback.types'

/** Counts what a flashback would bring back. Its sample rows can be read for 15 minutes (`flashback.rows`). */
export const preview = operatorProcedure
  .input(FlashbackPreviewInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'preview-flashback', input, idempotencyKey }),
  )
