import { ChangeReason, InstanceId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'
import { SettingRevisionId } from './revisions.types'

export const SettingRollBackInput = z.object({
  instanceId: InstanceId,
  /** One of setting.revisions. */
  revisionId: SettingRevisionId,
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})
