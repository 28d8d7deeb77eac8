import { InstanceId } from '@floe/domain'
import { CheckpointRecord, RunningCheckpoint, StallRecord } from '@floe/telemetry'
import { z } from 'zod'
import { longestRangeMinutes } from '../telemetry/telemetry.types'

export const CheckpointListInput = z.object({
  instanceId: InstanceId,
  /** Only those completed in this range, ms since the epoch; or in the last `minutes` up to now. */
  from: z.number().optional(),
  to: z.number().optional(),
  minutes: z.number().positive().max(longestRangeMinutes).optional(),
  limit: z.number().int().min(1).max(1_000).default(100),
})
export const CheckpointView = CheckpointRecord.extend({
  /** The agent's number. */
  seq: z.number().int(),
  /** `reasons` in words. */
  reason: z.string(),
})
export type CheckpointView = z.infer<typeof CheckpointView>
/** Newest first. */
export const CheckpointList = z.object({ checkpoints: z.array(CheckpointView) })

export const CheckpointRunningInput = z.object({ instanceId: InstanceId })
/** Asked of the agent at this moment. `recent` are those that ended but are not stored yet. */
export const CheckpointRunning = z.object({
  running: RunningCheckpoint.extend({ reason: z.string() }).nullable(),
  recent: z.array(CheckpointView),
  /** The stall that lasts. */
  stall: StallRecord.extend({ reason: z.string() }).nullable(),
})
