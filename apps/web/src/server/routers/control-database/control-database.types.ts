import { RestoredAccepted } from '@floe/domain'
import { z } from 'zod'

export const AcceptRestoredInput = z.object({
  /** Only this cluster, by name or id; everything that is in doubt when left out. */
  cluster: z.string().max(63).optional(),
  as: RestoredAccepted,
})
export const AcceptedRestored = z.object({
  /** What was in doubt until now; null is the control database itself. */
  accepted: z.array(z.object({ clusterName: z.string().nullable(), evidence: z.string() })),
})
export type AcceptedRestored = z.infer<typeof AcceptedRestored>
