import { HostId } from '@floe/domain'
import { z } from 'zod'
import { ShownCheckResult } from '../setting/setting.types'

export const InstanceCheckInput = z.object({
  /** Left out: the one that instance.create would choose. */
  hostId: HostId.optional(),
  settings: z
    .record(z.string().min(1).max(63), z.string().max(10_000))
    .refine((settings) => Object.keys(settings).length > 0, 'must name a setting')
    .refine((settings) => Object.keys(settings).length <= 100, 'must name at most 100 settings'),
})
/** Of each setting what the engine says; a fault where instance.create would be refused or the engine would not start. */
export const InstanceCheck = z.object({ hostId: HostId, results: z.array(ShownCheckResult) })
export type InstanceCheck = z.infer<typeof InstanceCheck>
