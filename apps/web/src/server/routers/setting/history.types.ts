import { InstanceId, OperationId } from '@floe/domain'
import { z } from 'zod'

export const SettingHistoryInput = z.object({
  instanceId: InstanceId,
  name: z.string().max(63).optional(),
  limit: z.number().int().min(1).max(500).default(100),
})
/** A change as the instance confirmed it. */
export const SettingHistoryEntry = z.object({
  operationId: OperationId,
  at: z.number(),
  name: z.string(),
  oldValue: z.string().nullable(),
  newValue: z.string().nullable(),
  pendingRestart: z.boolean(),
  /** Why, in the words of who asked. */
  reason: z.string().nullable(),
  actor: z.string(),
  actorName: z.string(),
})
export type SettingHistoryEntry = z.infer<typeof SettingHistoryEntry>
/** Newest first. */
export const SettingHistory = z.object({ changes: z.array(SettingHistoryEntry) })
