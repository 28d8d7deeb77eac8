import { InstanceId, Protection, RepairedRecovery, RepairSource, SourceApart } from '@floe/domain'
import { z } from 'zod'

export const ProtectionHistoryInput = z.object({
  instanceId: InstanceId,
  limit: z.number().int().min(1).max(500).default(50),
})

export const ProtectionHistory = z.object({
  recoveries: z.array(
    RepairedRecovery.extend({
      /** Who gave how many pages; `member` is null where no member has that address any more. */
      sources: z.array(
        z.object({
          source: z.string(),
          member: z.string().nullable(),
          pages: z.number(),
          bytes: z.number(),
        }),
      ),
    }),
  ),
  now: z.number(),
})

export const ProtectionView = Protection.extend({
  sources: z.array(
    RepairSource.extend({
      /** Name of the member with that address; null where none has it. */
      member: z.string().nullable(),
      /** What it does not share with this instance; null where no member has that address. */
      apart: SourceApart.nullable(),
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
