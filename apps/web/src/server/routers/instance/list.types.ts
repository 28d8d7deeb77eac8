import { z } from 'zod'
import { InstanceSummary } from './instance.types'

export const InstanceListInput = z
  .object({
    /** Part of the name, of the host's name, or a port. */
    search: z.string().max(100).optional(),
  })
  .default({})
export const InstanceList = z.object({ instances: z.array(InstanceSummary), now: z.number() })
