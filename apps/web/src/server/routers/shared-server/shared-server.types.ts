import { InstanceId, SharedServer } from '@floe/domain'
import { z } from 'zod'

export const SharedServerReadInput = z.object({ instanceId: InstanceId })
export const SharedServerRead = z.object({
  /** Null for an engine, or a database, without the views of shared_server. */
  sharedServer: SharedServer.nullable(),
  /** ms since the epoch */
  observedAt: z.number(),
})
export type SharedServerRead = z.infer<typeof SharedServerRead>
