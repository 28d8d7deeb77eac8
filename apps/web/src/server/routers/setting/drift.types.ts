import { InstanceId } from '@floe/domain'
import { z } from 'zod'

export const SettingDriftInput = z.object({ instanceId: InstanceId })
/** A setting that a file says otherwise than Floe left it: somebody edited the file or used ALTER SYSTEM. */
export const SettingDriftEntry = z.object({
  name: z.string(),
  /** Its name in the data directory. */
  file: z.string(),
  /** Where it stands now; null where the line is gone. */
  line: z.number().int().nullable(),
  /** The values of the file's line before and now; null: there is none. */
  was: z.string().nullable(),
  is: z.string().nullable(),
})
export type SettingDriftEntry = z.infer<typeof SettingDriftEntry>
export const SettingDrift = z.object({
  drift: z.array(SettingDriftEntry),
  /** When its agent told, ms since the epoch; null where it never has. */
  observedAt: z.number().nullable(),
})
