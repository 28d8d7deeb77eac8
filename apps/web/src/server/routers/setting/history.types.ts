import { ConfirmedSetting, InstanceId, OperationId } from '@floe/domain'
import { z } from 'zod'

export const SettingHistoryInput = z.object({
  instanceId: InstanceId,
  name: z.string().max(63).optional(),
  limit: z.number().int().min(1).max(500).default(100),
})
/** A change as the instance confirmed it. */
export const SettingHistoryEntry = ConfirmedSetting.extend({
  operationId: OperationId,
  at: z.number(),
  /** Why, in the words of who asked. */
  reason: z.string().nullable(),
  actor: z.string(),
  actorName: z.string(),
})
export type SettingHistoryEntry = z.infer<typeof SettingHistoryEntry>
/** Newest first. */
export const SettingHistory = z.object({ changes: z.array(SettingHistoryEntry) })
