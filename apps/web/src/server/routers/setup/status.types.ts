import { z } from 'zod'

export const SetupStatusInput = z.object({ token: z.string().max(200).optional() }).default({})
export const SetupStatus = z.object({
  /** Once an owner exists, set-up links do nothing any more. */
  ownerExists: z.boolean(),
  /** State of the link whose token was given; null when none was. */
  link: z.enum(['valid', 'used', 'expired', 'unknown']).nullable(),
})
export type SetupStatus = z.infer<typeof SetupStatus>
