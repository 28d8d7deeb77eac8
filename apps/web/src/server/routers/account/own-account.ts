import { fault } from '@floe/domain'
import type { Context } from '../../context'
import type { Account } from './account.types'

/** The person who asks and their session. Throws `account.no_person` for a token, which has no account. */
export async function ownAccount(
  ctx: Pick<Context, 'findSessionId'> & { actor: Account },
): Promise<{ userId: string; sessionId: string }> {
  const sessionId = ctx.actor.kind === 'user' ? await ctx.findSessionId() : null
  if (sessionId === null)
    throw fault('account.no_person', 'an API token has no account', {
      hint: 'Sign in to the console to change your own account.',
    })
  return { userId: ctx.actor.id, sessionId }
}

/** What is the same in the audit row of every change of an account. */
export const accountEvent = (ctx: Pick<Context, 'ipAddress'> & { actor: Account }) => ({
  actor: ctx.actor,
  objectKind: 'user',
  objectId: ctx.actor.id,
  ipAddress: ctx.ipAddress,
})
