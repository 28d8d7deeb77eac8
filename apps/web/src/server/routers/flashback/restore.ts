import { adminProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackRestoreInput } from './flashback.types'

/** Restores a table from a base backup and a WAL archive: an admin’s, because it names directories of the host. */
export const restore = adminProcedure
  .input(FlashbackRestoreInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'restore-table', input, idempotencyKey }),
  )
