import { InstanceId } from '@floe/domain'
import { StallRecord } from '@floe/telemetry'
import { z } from 'zod'
import { longestRangeMinutes } from '../telemetry/telemetry.types'

export const StallListInput = z.object({
  instanceId: InstanceId,
  /** Only those that reach into this range, ms since the epoch; or into the last `minutes` up to now. */
  from: z.number().optional(),
  to: z.number().optional(),
  minutes: z.number().positive().max(longestRangeMinutes).optional(),
  limit: z.number().int().min(1).max(1_000).default(100),
})
export const StallView = StallRecord.extend({
  /** The agent's number. */
  seq: z.number().int(),
  /** `cause` in words. */
  reason: z.string(),
  /** Its most frequent waits, with the share of each; empty where sessions waited for nothing. */
  waited: z.string(),
})
export type StallView = z.infer<typeof StallView>
/** Newest first. */
export const StallList = z.object({ stalls: z.array(StallView) })
