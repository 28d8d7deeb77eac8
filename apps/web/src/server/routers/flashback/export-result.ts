import { adminProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackExportInput } from './flashback.types'

/** Opens the download of a result: who may not see rows has no use for it. */
export const exportResult = adminProcedure
  .input(FlashbackExportInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'export-flashback', input, idempotencyKey }),
  )
