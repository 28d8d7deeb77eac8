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

/** Ends one session of whoever asks. Throws `session.not_found`, also for somebody else's. */
export const endSession = viewerProcedure
  .input(SessionRef)
  .output(SessionsEnded)
  .mutation(async ({ ctx, input: { sessionId } }) => {
    const { userId } = await ownAccount(ctx)
    return end(ctx, userId, { only: sessionId })
  })

/** Ends all sessions of whoever asks but the one they ask with. */
export const endOtherSessions = viewerProcedure.output(SessionsEnded).mutation(async ({ ctx }) => {
  const { userId, sessionId } = await ownAccount(ctx)
  return end(ctx, userId, { allBut: sessionId })
})
