import { PersonName, TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX, TokenRole } from '@floe/domain'
import { z } from 'zod'

export const TokenRef = z.object({ tokenId: z.uuid() })

export const TokenCreateInput = z.object({
  name: PersonName,
  role: TokenRole,
  days: z.number().int().min(1).max(TOKEN_DAYS_MAX).default(TOKEN_DAYS_DEFAULT),
})
/** The secret is shown this once. */
export const TokenCreated = z.object({ tokenId: z.uuid(), secret: z.string(), expiresAt: z.number() })
export const TokenRevoked = z.object({ tokenId: z.uuid(), name: z.string() })

export const Token = z.object({
  tokenId: z.uuid(),
  name: z.string(),
  role: TokenRole,
  madeByName: z.string(),
  createdAt: z.number(),
  expiresAt: z.number(),
  /** Exact to a minute. */
  lastUsedAt: z.number().nullable(),
  expired: z.boolean(),
})
export type Token = z.infer<typeof Token>
/** The newest first; those that expired stand here for a month. */
export const TokenList = z.object({ tokens: z.array(Token), now: z.number() })
