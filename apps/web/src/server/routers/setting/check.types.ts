import { CheckedSetting, InstanceId, SettingChange } from '@floe/domain'
import { z } from 'zod'

export const SettingCheckInput = z.object({
  instanceId: InstanceId,
  changes: z.array(SettingChange).min(1).max(100),
})
/** What the instance's own binary says a change would do. */
export const SettingCheckResult = CheckedSetting.partial({ oldNumber: true, newNumber: true })
/** Of each change; nothing was changed. */
export const SettingCheck = z.object({
  results: z.array(SettingCheckResult.omit({ oldNumber: true, newNumber: true })),
})
export type SettingCheck = z.infer<typeof SettingCheck>
