import { Fault, InstanceId, SettingChange, SettingImpact } from '@floe/domain'
import { z } from 'zod'

export const SettingCheckInput = z.object({
  instanceId: InstanceId,
  changes: z.array(SettingChange).min(1).max(100),
})
/** What the instance's own binary says a change would do. */
export const SettingCheckResult = z.object({
  name: z.string(),
  oldValue: z.string().nullable(),
  newValue: z.string().nullable(),
  impact: SettingImpact,
  fault: Fault.nullable(),
  /** Of a setting that standbys may not have smaller: what it runs with, and what the change would make of it. */
  oldNumber: z.number().nullish(),
  newNumber: z.number().nullish(),
})
/** Of each change; nothing was changed. */
export const SettingCheck = z.object({
  results: z.array(SettingCheckResult.omit({ oldNumber: true, newNumber: true })),
})
export type SettingCheck = z.infer<typeof SettingCheck>
