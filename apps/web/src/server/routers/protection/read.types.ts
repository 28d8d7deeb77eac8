import { InstanceId, Protection } from '@floe/domain'
import { z } from 'zod'

export const ProtectionReadInput = z.object({ instanceId: InstanceId })
export const ProtectionRead = z.object({
  /** null for an engine, or a database, without the views of page_repair. */
  protection: Protection.nullable(),
  /** ms since the epoch */
  observedAt: z.number(),
})
