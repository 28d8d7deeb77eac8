import { ChangeReason, InstanceId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'
import { SettingStateId } from './states.types'

export const SettingRollBackInput = z.object({
  instanceId: InstanceId,
  /** One of setting.states. */
  stateId: SettingStateId,
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})
