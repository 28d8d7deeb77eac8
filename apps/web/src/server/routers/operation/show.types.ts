import { OperationId } from '@floe/domain'
import { z } from 'zod'
import { OperationDetail, OperationLogLine } from './operation.types'

export const OperationShowInput = z.object({
  operationId: OperationId,
  /** Log lines with a greater id; 0 reads from the start. */
  afterLogId: z.number().int().min(0).default(0),
})
export const OperationShow = z.object({
  operation: OperationDetail,
  log: z.array(OperationLogLine),
  now: z.number(),
})
export type OperationShow = z.infer<typeof OperationShow>
