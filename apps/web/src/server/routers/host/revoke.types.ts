import { HostId } from '@floe/domain'
import { z } from 'zod'

/** `confirmName`: the host's name, typed once more. */
export const HostRevokeInput = z.object({ hostId: HostId, confirmName: z.string().max(100) })
export const HostRemoveInput = HostRevokeInput
export const HostRevoke = z.object({ hostId: HostId, name: z.string() })
export const HostRemove = HostRevoke.extend({
  /** How many instances the console forgot with it. */
  instances: z.number().int(),
})
export const EnrolmentWithdrawInput = z.object({ enrolmentId: z.uuid() })
