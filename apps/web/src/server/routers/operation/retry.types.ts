import { OperationId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from './operation.types'

/** The new operation has the same input. */
export const OperationRetryInput = z.object({
  operationId: OperationId,
  idempotencyKey: IdempotencyKey.optional(),
})
