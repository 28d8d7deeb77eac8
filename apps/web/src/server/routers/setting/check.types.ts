import { Fault, InstanceId, SettingChange, SettingImpact } from '@floe/domain'
import { z } from 'zod'

export const SettingCheckInput = z.object({
  instanceId: InstanceId,
  changes: z.array(SettingChange).min(1).max(100),
})
/** What the instance's own binary says each change would do. Nothing was changed. */
export const SettingCheck = z.object({
  results: z.array(
    z.object({
      name: z.string(),
      oldValue: z.string().nullable(),
      newValue: z.string().nullable(),
      impact: SettingImpact,
      fault: Fault.nullable(),
    }),
  ),
})
export type SettingCheck = z.infer<typeof SettingCheck>
