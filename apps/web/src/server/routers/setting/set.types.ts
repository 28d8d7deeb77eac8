import { ChangeReason, InstanceId, SettingChange } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const SettingSetInput = z.object({
  instanceId: InstanceId,
  /** A value of null goes back to the default. */
  changes: z.array(SettingChange).min(1).max(100),
  /** Why; kept in the history. */
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})
