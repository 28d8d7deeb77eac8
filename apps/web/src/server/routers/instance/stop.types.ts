import { InstanceId, StopMode } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

/** Of stop and restart. fast ends sessions and writes a checkpoint; immediate does neither, the next start recovers. */
export const InstanceStopInput = z.object({
  instanceId: InstanceId,
  mode: StopMode.default('fast'),
  idempotencyKey: IdempotencyKey.optional(),
})
