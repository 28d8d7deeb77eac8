import { insertAuditEvent, showOperation } from '@floe/db'
import { fault, InstanceId, operationRecord } from '@floe/domain'
import { adminProcedure } from '../../procedures'
import { FlashbackRowsInput, FlashbackRowsRead } from './flashback.types'
import { probe } from './probe'

/**
 * Sample rows of a preview, a comparison or a merge, and the engine's words of a flashback that failed, from the memory of the
 * agent that carried it out. They are stored nowhere; who asked is, before they are answered. A mutation for that reason.
 */
export const rows = adminProcedure
  .input(FlashbackRowsInput)
  .output(FlashbackRowsRead)
  .mutation(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const operation = await showOperation(pool, input.operationId)
    if (!operation?.instance || !operationRecord(operation.kind).keepsRows)
      throw fault('flashback.rows_not_found', 'this operation has no rows to show', {
        hint: 'Rows are shown of a preview, a comparison and a merge, and what the engine said of a flashback.',
      })
    const { instanceId, name } = operation.instance
    const { database, tableName } = operation.input
    await insertAuditEvent(pool, {
      actor: ctx.actor,
      action: 'flashback.read_rows',
      outcome: 'allowed',
      objectKind: 'instance',
      objectId: instanceId,
      detail: { operationId: input.operationId, name, database, tableName },
      ipAddress: ctx.ipAddress,
    })
    return probe(ctx, InstanceId.parse(instanceId), (f) => f.rows.query(input))
  })
