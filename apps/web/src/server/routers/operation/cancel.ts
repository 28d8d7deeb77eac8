import { cancelOperation } from '@floe/operations/submit'
import { operatorProcedure } from '../../procedures'
import { OperationCancelInput, OperationRef } from './operation.types'

/** Asks an operation to give up; it may still succeed when its last step is already done. */
export const cancel = operatorProcedure
  .input(OperationCancelInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input }) => {
    await cancelOperation(ctx.ports.database, {
      ...input,
      actor: ctx.actor,
      audit: { ipAddress: ctx.ipAddress },
    })
    return input
  })
