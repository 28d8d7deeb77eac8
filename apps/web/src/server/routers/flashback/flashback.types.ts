import { FlashbackLog, FlashbackPoint, InstanceId } from '@floe/domain'
import { z } from 'zod'

export const FlashbackReadInput = z.object({ instanceId: InstanceId })
export const FlashbackRead = z.object({
  /** Null for an engine, or a database, without the views of flashback_log, and for an agent that does not know them. */
  log: FlashbackLog.nullable(),
  /** Moments from which pages can be rebuilt, oldest first. */
  points: z.array(FlashbackPoint),
  /** ms since the epoch */
  observedAt: z.number(),
})
