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
