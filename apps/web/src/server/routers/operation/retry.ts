import { OperationId } from '@floe/domain'
import { retryOperation } from '@floe/operations/submit'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from './operation.types'
import { OperationRetryInput } from './retry.types'

/** Takes a failed or cancelled operation up again, as a new one that begins where it ended. */
export const retry = operatorProcedure
  .input(OperationRetryInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input }) => {
    const { operationId } = await retryOperation(ctx.ports.database, {
      ...input,
      actor: ctx.actor,
      audit: { ipAddress: ctx.ipAddress },
    })
    return { operationId: OperationId.parse(operationId) }
  })
