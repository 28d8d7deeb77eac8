import { ChangeReason, InstanceId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const SettingResolveInput = z.object({
  instanceId: InstanceId,
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})
