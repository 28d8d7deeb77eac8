import { insertAuditEvent, inTransaction, revokeLimitedToken } from '@floe/db'
import { fault } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { TokenRef, TokenRevoked } from './token.types'
import { whoseTokens } from './whose'

/** Revokes an API token for good: the caller's own, an admin anybody's. Throws `token.not_found`. */
export const revoke = operatorProcedure
  .input(TokenRef)
  .output(TokenRevoked)
  .mutation(({ ctx, input: { tokenId } }) =>
    inTransaction(ctx.ports.database.pool, async (tx) => {
      const name = await revokeLimitedToken(tx, tokenId, whoseTokens(ctx.actor))
      if (name === undefined)
        throw fault('token.not_found', `API token "${tokenId}" does not exist`, {
          hint: 'It may have been revoked already.',
        })
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'token.revoke',
        outcome: 'allowed',
        objectKind: 'token',
        objectId: tokenId,
        detail: { name },
        ipAddress: ctx.ipAddress,
      })
      return { tokenId, name }
    }),
  )
