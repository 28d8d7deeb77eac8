import { InstanceId, Protection, RepairSource } from '@floe/domain'
import { z } from 'zod'

export const ProtectionView = Protection.extend({
  sources: z.array(
    RepairSource.extend({
      /** Name of the member with that address; null where none has it. */
      member: z.string().nullable(),
      /** WAL of this primary that the source has not flushed, in bytes; null while unknown, and on a standby. */
      lagBytes: z.number().nullable(),
    }),
  ),
})
export type ProtectionView = z.infer<typeof ProtectionView>

export const ProtectionReadInput = z.object({ instanceId: InstanceId })
export const ProtectionRead = z.object({
  /** null for an engine, or a database, without the views of page_repair. */
  protection: ProtectionView.nullable(),
  /** ms since the epoch */
  observedAt: z.number(),
})
