import { operationRecord } from '@floe/domain'
import { requireOperationRole } from '../../operation-role'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { FlashbackMergeInput } from './flashback.types'

/** Puts rows of a result back into its table, or counts them; those that match a condition for an admin only. */
export const merge = operatorProcedure
  .input(FlashbackMergeInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, ...input } }) => {
    const kind = 'merge-flashback'
    await requireOperationRole(
      ctx,
      { kind, input },
      { action: operationRecord(kind).action, objectId: input.instanceId },
    )
    return submit(ctx, { kind, input, idempotencyKey })
  })
