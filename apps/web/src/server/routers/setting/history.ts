import { listSettingChanges } from '@floe/db'
import type { OperationId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { SettingHistory, SettingHistoryInput } from './history.types'

/** Who changed which setting when, newest first, as the instance confirmed it. */
export const history = viewerProcedure
  .input(SettingHistoryInput)
  .output(SettingHistory)
  .query(async ({ ctx, input }) => {
    const rows = await listSettingChanges(ctx.ports.database.pool, input)
    return {
      changes: rows.map(({ id, at, operationId, ...row }) => ({
        ...row,
        operationId: operationId as OperationId,
        at: at.getTime(),
      })),
    }
  })
