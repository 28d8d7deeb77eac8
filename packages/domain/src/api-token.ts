import { z } from 'zod'

/** What an API token may; an owner's rights are no token's. */
export const TokenRole = z.enum(['viewer', 'operator', 'admin'])
export type TokenRole = z.infer<typeof TokenRole>

/** How long an API token lives at most, and unless something else is said. */
export const TOKEN_DAYS_MAX = 366
export const TOKEN_DAYS_DEFAULT = 30
