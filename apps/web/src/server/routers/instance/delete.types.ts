import { InstanceId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const InstanceDeleteInput = z.object({
  instanceId: InstanceId,
  /** Typed by the person; must equal the instance's name. */
  confirmName: z.string(),
  /** Keep the data directory on the host (renamed, never started again by Floe). */
  keepFiles: z.boolean().default(false),
  idempotencyKey: IdempotencyKey.optional(),
})
