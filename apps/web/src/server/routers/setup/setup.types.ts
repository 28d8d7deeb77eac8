import { PersonName } from '@floe/domain'
import { z } from 'zod'

export const PASSPHRASE_MIN = 12
export const PASSPHRASE_MAX = 128

export const Passphrase = z
  .string()
  .min(PASSPHRASE_MIN, `must have at least ${PASSPHRASE_MIN} characters`)
  .max(PASSPHRASE_MAX, `must have at most ${PASSPHRASE_MAX} characters`)

export const SetupCompleteInput = z.object({
  token: z.string().min(1).max(200),
  name: PersonName,
  email: z.email('must be an e-mail address').max(200),
  passphrase: Passphrase,
})
/** The owner exists; sign in next. */
export const SetupComplete = z.object({ email: z.string() })

export const SetupStatusInput = z.object({ token: z.string().max(200).optional() }).default({})
export const SetupStatus = z.object({
  /** Once an owner exists, set-up links do nothing any more. */
  ownerExists: z.boolean(),
  /** State of the link whose token was given; null when none was. */
  link: z.enum(['valid', 'used', 'expired', 'unknown']).nullable(),
})
export type SetupStatus = z.infer<typeof SetupStatus>
