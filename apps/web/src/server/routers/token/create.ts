import { randomBytes, randomUUID } from 'node:crypto'
import { insertAuditEvent, inTransaction, makeLimitedToken } from '@floe/db'
import { fault } from '@floe/domain'
import { operatorProcedure, roleTooLow } from '../../procedures'
import { mayAsMuch } from '../account/account.types'
import { TokenCreated, TokenCreateInput } from './token.types'
import { makesTokens } from './whose'

/**
 * Makes an API token for a program, with a role that is at most the caller's and an end within a year. The secret leaves with
 * this answer only; its hash is kept. It never may more than its maker does then. Throws `token.makes_none`, or
 * `session.role_too_low`.
 */
export const create = operatorProcedure
  .input(TokenCreateInput)
  .output(TokenCreated)
  .mutation(async ({ ctx, input: { name, role, days } }) => {
    const { actor } = ctx
    if (!makesTokens(actor))
      throw fault('token.makes_none', 'an API token cannot create API tokens', {
        hint: 'Create it in the console, or with the command line of its machine.',
      })
    if (!mayAsMuch(actor.role, role)) throw roleTooLow(actor.role, role)
    const tokenId = randomUUID()
    const secret = `floe-${randomBytes(32).toString('base64url')}`
    const expiresAt = await inTransaction(ctx.ports.database.pool, async (tx) => {
      const ends = await makeLimitedToken(tx, {
        tokenId,
        name,
        secret,
        userId: actor.kind === 'user' ? actor.id : null,
        role,
        seconds: days * 86_400,
        madeByName: actor.name,
      })
      await insertAuditEvent(tx, {
        actor,
        action: 'token.create',
        outcome: 'allowed',
        objectKind: 'token',
        objectId: tokenId,
        detail: { name, role, days },
        ipAddress: ctx.ipAddress,
      })
      return ends
    })
    return { tokenId, secret, expiresAt: expiresAt.getTime() }
  })
