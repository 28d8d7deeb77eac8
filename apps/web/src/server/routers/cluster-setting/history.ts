import { listClusterSettingChanges } from '@floe/db'
import type { InstanceId, OperationId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { ClusterSettingHistory, ClusterSettingHistoryInput } from './cluster-setting.types'

/** Who changed which setting on which member when and why, newest first, as each member confirmed it. */
export const history = viewerProcedure
  .input(ClusterSettingHistoryInput)
  .output(ClusterSettingHistory)
  .query(async ({ ctx, input }) => {
    const rows = await listClusterSettingChanges(ctx.ports.database.pool, input)
    return {
      changes: rows.map(({ id: _, at, operationId, instanceId, ...row }) => ({
        ...row,
        instanceId: instanceId as InstanceId,
        operationId: operationId as OperationId,
        at: at.getTime(),
      })),
    }
  })
