import { InstanceId, RepairedRecovery } from '@floe/domain'
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
