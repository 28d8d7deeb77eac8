import { InstanceId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

/** Of start and reload. */
export const InstanceStartInput = z.object({
  instanceId: InstanceId,
  idempotencyKey: IdempotencyKey.optional(),
})
