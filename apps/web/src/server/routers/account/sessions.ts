import { listSessions } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { SessionList } from './account.types'
import { ownAccount } from './own-account'

/** The caller's sessions. */
export const sessions = viewerProcedure.output(SessionList).query(async ({ ctx }) => {
  const { userId, sessionId } = await ownAccount(ctx)
  const rows = await listSessions(ctx.ports.database.pool, userId)
  return {
    sessions: rows.map((row) => ({
      sessionId: row.sessionId,
      own: row.sessionId === sessionId,
      beganAt: row.createdAt.getTime(),
      lastUsedAt: row.updatedAt.getTime(),
      expiresAt: row.expiresAt.getTime(),
      address: row.ipAddress || null,
      userAgent: row.userAgent || null,
    })),
    now: Date.now(),
  }
})
