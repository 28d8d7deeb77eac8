import { PersonName } from '@floe/domain'
import { z } from 'zod'
import { Passphrase } from '../setup/setup.types'

export const AccountRenameInput = z.object({ name: PersonName })
export const AccountRenamed = z.object({ name: z.string() })

export const PassphraseChangeInput = z.object({
  current: z.string().min(1, 'must not be empty').max(1_000),
  next: Passphrase,
})
/** Every other session ended with the passphrase it was begun with. */
export const PassphraseChanged = z.object({ endedSessions: z.number().int() })

export const SessionRef = z.object({ sessionId: z.string().min(1).max(100) })
export const SessionsEnded = z.object({ endedSessions: z.number().int() })

export const Session = z.object({
  sessionId: z.string(),
  /** The session of the request. */
  own: z.boolean(),
  beganAt: z.number(),
  /** Exact to about ten minutes. */
  lastUsedAt: z.number(),
  expiresAt: z.number(),
  /** Address of its browser, or of a proxy. */
  address: z.string().nullable(),
  userAgent: z.string().nullable(),
})
export type Session = z.infer<typeof Session>
/** The one used last first. */
export const SessionList = z.object({ sessions: z.array(Session), now: z.number() })

export const AccountRole = z.enum(['viewer', 'operator', 'admin', 'owner'])
export type AccountRole = z.infer<typeof AccountRole>

/** Whether a role may all that another one may. */
export const mayAsMuch = (role: AccountRole, as: AccountRole): boolean =>
  AccountRole.options.indexOf(role) >= AccountRole.options.indexOf(as)

export const Account = z.object({
  kind: z.enum(['user', 'token']),
  id: z.string(),
  name: z.string(),
  email: z.string().nullable(),
  role: AccountRole,
})
export type Account = z.infer<typeof Account>
