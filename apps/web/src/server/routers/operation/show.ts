import { readOperationLog, showOperation } from '@floe/db'
import { fault } from '@floe/domain'
import type { Ports } from '../../ports'
import { viewerProcedure } from '../../procedures'
import { OperationShow, OperationShowInput } from './operation.types'
import { operationDetail, operationLogLine } from './operation.views'

/** One operation with its steps and the log lines after an id. Throws `operation.not_found`. */
export const show = viewerProcedure
  .input(OperationShowInput)
  .output(OperationShow)
  .query(({ ctx, input }) => readOperation(ctx.ports, input.operationId, input.afterLogId))

export async function readOperation(
  ports: Ports,
  operationId: string,
  afterLogId: number,
): Promise<OperationShow> {
  const { pool } = ports.database
  const operation = await showOperation(pool, operationId)
  if (!operation) throw fault('operation.not_found', `operation "${operationId}" does not exist`)
  const log = await readOperationLog(pool, { operationId, afterId: String(afterLogId) })
  return { operation: operationDetail(operation), log: log.map(operationLogLine), now: Date.now() }
}
