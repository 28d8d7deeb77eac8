import { InstanceId, Setting, SettingImpact } from '@floe/domain'
import { z } from 'zod'

export const SettingListInput = z.object({
  instanceId: InstanceId,
  /** Part of the name, the description or the category. */
  search: z.string().max(100).optional(),
  /** Only these. */
  names: z.array(z.string().max(63)).max(200).optional(),
})
export const SettingView = Setting.extend({
  impact: SettingImpact,
  /** Our words, for the settings that matter most. */
  title: z.string().nullable(),
  meaning: z.string().nullable(),
  warning: z.string().nullable(),
})
export type SettingView = z.infer<typeof SettingView>
export const SettingList = z.object({ settings: z.array(SettingView), observedAt: z.number() })
