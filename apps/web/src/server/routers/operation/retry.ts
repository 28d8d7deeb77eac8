import { readOperationForRetry, showInstance } from '@floe/db'
import { OperationId } from '@floe/domain'
import { retryOperation, settingsNamedIn } from '@floe/operations/submit'
import { requireOperationRole } from '../../operation-role'
import { operatorProcedure } from '../../procedures'
import { requireProgramRight } from '../../program-settings'
import { OperationRef, OperationRetryInput } from './operation.types'

/** Takes a failed or cancelled operation up again, as a new one that begins where it ended. */
export const retry = operatorProcedure
  .input(OperationRetryInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input }) => {
    const ended = await readOperationForRetry(ctx.ports.database.pool, input.operationId)
    if (ended) {
      const about = { action: 'operation.retry', objectId: ended.instanceId ?? undefined }
      await requireOperationRole(ctx, ended, about)
      const drifted =
        ended.kind === 'resolve-drift' && ended.instanceId
          ? await showInstance(ctx.ports.database.pool, ended.instanceId)
          : undefined
      const names = [
        ...settingsNamedIn(ended.kind, ended.input),
        ...(drifted?.settingDrift.map((d) => d.name) ?? []),
      ]
      await requireProgramRight(ctx, names, about)
    }
    const { operationId } = await retryOperation(ctx.ports.database, {
      ...input,
      actor: ctx.actor,
      audit: { ipAddress: ctx.ipAddress },
    })
    return { operationId: OperationId.parse(operationId) }
  })
