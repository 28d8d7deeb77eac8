import { listLimitedTokens } from '@floe/db'
import { TokenRole } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { TokenList } from './token.types'
import { whoseTokens } from './whose'

/** API tokens that were made for programs: the caller's own, for an admin everybody's. */
export const list = operatorProcedure.output(TokenList).query(async ({ ctx }) => {
  const rows = await listLimitedTokens(ctx.ports.database.pool, whoseTokens(ctx.actor))
  return {
    tokens: rows.map((row) => ({
      ...row,
      role: TokenRole.parse(row.role),
      createdAt: row.createdAt.getTime(),
      expiresAt: row.expiresAt.getTime(),
      lastUsedAt: row.lastUsedAt?.getTime() ?? null,
    })),
    now: Date.now(),
  }
})
