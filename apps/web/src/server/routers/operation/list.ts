import { listOperations } from '@floe/db'
import { fault } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { OperationList, OperationListInput } from './operation.types'
import { operationSummary } from './operation.views'

/** Operations, newest first, page by page. */
export const list = viewerProcedure
  .input(OperationListInput)
  .output(OperationList)
  .query(async ({ ctx, input }) => {
    const rows = await listOperations(ctx.ports.database.pool, {
      instanceId: input.instanceId,
      states: input.states,
      before: input.cursor === undefined ? undefined : parseCursor(input.cursor),
      limit: input.limit + 1,
    })
    const page = rows.slice(0, input.limit)
    const last = page.at(-1)
    return {
      operations: page.map(operationSummary),
      nextCursor:
        rows.length > input.limit && last ? `${last.createdAt.getTime()}_${last.operationId}` : null,
      now: Date.now(),
    }
  })

function parseCursor(cursor: string) {
  const [, at, operationId] = /^(\d{1,15})_([0-9a-f-]{36})$/.exec(cursor) ?? []
  if (!at || !operationId) throw fault('operation.bad_cursor', 'cursor is not one of operation.list')
  return { createdAt: new Date(Number(at)), operationId }
}
