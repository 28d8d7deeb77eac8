import { InstanceId } from '@floe/domain'
import { RunningCheckpoint } from '@floe/telemetry'
import { z } from 'zod'
import { CheckpointView } from './list.types'

export const CheckpointRunningInput = z.object({ instanceId: InstanceId })
/** Asked of the agent at this moment. `recent` are those that ended but are not stored yet. */
export const CheckpointRunning = z.object({
  running: RunningCheckpoint.extend({ reason: z.string() }).nullable(),
  recent: z.array(CheckpointView),
})
