import { InstanceId, OperationState } from '@floe/domain'
import { z } from 'zod'
import { OperationSummary } from './operation.types'

export const OperationListInput = z
  .object({
    instanceId: InstanceId.optional(),
    states: z.array(OperationState).optional(),
    limit: z.number().int().min(1).max(200).default(50),
    /** `nextCursor` of the page before. */
    cursor: z.string().max(80).optional(),
  })
  .default({ limit: 50 })
export const OperationList = z.object({
  /** Newest first. */
  operations: z.array(OperationSummary),
  nextCursor: z.string().nullable(),
  now: z.number(),
})
