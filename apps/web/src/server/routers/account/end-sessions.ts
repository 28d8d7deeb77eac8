import { endSessions, insertAuditEvent, inTransaction } from '@floe/db'
import { fault } from '@floe/domain'
import type { Context } from '../../context'
import { viewerProcedure } from '../../procedures'
import { type Account, SessionRef, SessionsEnded } from './account.types'
import { accountEvent, ownAccount } from './own-account'

type Asking = Context & { actor: Account }

async function end(ctx: Asking, userId: string, which: { only: string } | { allBut: string }) {
  return inTransaction(ctx.ports.database.pool, async (tx) => {
    const endedSessions = await endSessions(tx, userId, which)
    if ('only' in which && endedSessions === 0)
      throw fault('session.not_found', 'this session does not exist', { hint: 'It may have ended already.' })
    await insertAuditEvent(tx, {
      ...accountEvent(ctx),
      action: 'only' in which ? 'account.endSession' : 'account.endOtherSessions',
      outcome: 'allowed',
      detail: { ...which, endedSessions },
    })
    return { endedSessions }
  })
}

/** Ends one of the caller's sessions. Throws `session.not_found`, also for another user's. */
export const endSession = viewerProcedure
  .input(SessionRef)
  .output(SessionsEnded)
  .mutation(async ({ ctx, input: { sessionId } }) => {
    const { userId } = await ownAccount(ctx)
    return end(ctx, userId, { only: sessionId })
  })

/** Ends all of the caller's sessions but the current one. */
export const endOtherSessions = viewerProcedure.output(SessionsEnded).mutation(async ({ ctx }) => {
  const { userId, sessionId } = await ownAccount(ctx)
  return end(ctx, userId, { allBut: sessionId })
})
