import { listIncidents } from '@floe/db'
import type { HostId, InstanceId, OperationId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { ms } from '../operation/operation.views'
import { IncidentList, IncidentListInput } from './list.types'

/** What needs a person, newest first. */
export const list = viewerProcedure
  .input(IncidentListInput)
  .output(IncidentList)
  .query(async ({ ctx, input }) => {
    const rows = await listIncidents(ctx.ports.database.pool, {
      instanceId: input.instanceId,
      includeClosed: input.closed,
      limit: input.limit,
    })
    return {
      incidents: rows.map((row) => ({
        ...row,
        hostId: row.hostId as HostId | null,
        instanceId: row.instanceId as InstanceId | null,
        operationId: row.operationId as OperationId | null,
        openedAt: row.openedAt.getTime(),
        closedAt: ms(row.closedAt),
      })),
      now: Date.now(),
    }
  })
