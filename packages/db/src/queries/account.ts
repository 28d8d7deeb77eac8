import type { Queryable, Transaction } from '../database'

/** A session as its owner sees it; never its token. */
export type SessionRow = {
  sessionId: string
  createdAt: Date
  /** When it was last used, to some minutes. */
  updatedAt: Date
  expiresAt: Date
  ipAddress: string | null
  userAgent: string | null
}

/** Changes what a person is called from now on; rows written before keep the name they have. */
export async function renameUser(tx: Transaction, userId: string, name: string): Promise<void> {
  await tx.query(`UPDATE "user" SET name = $2, "updatedAt" = now() WHERE id = $1`, [userId, name])
}

/** The hash of a person's passphrase; null when they have none. */
export async function findPassphraseHash(on: Queryable, userId: string): Promise<string | null> {
  const { rows } = await on.query<{ password: string | null }>(
    `SELECT password FROM account WHERE "userId" = $1 AND "providerId" = 'credential'`,
    [userId],
  )
  return rows[0]?.password ?? null
}

/** Replaces a hash that was looked at; false when it is another by now. */
export async function replacePassphraseHash(
  tx: Transaction,
  userId: string,
  hash: { before: string; after: string },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE account SET password = $3, "updatedAt" = now()
      WHERE "userId" = $1 AND "providerId" = 'credential' AND password = $2`,
    [userId, hash.before, hash.after],
  )
  return rowCount === 1
}

/** A person's sessions that have not expired, the one used last first. */
export async function listSessions(on: Queryable, userId: string): Promise<SessionRow[]> {
  const { rows } = await on.query<SessionRow>(
    `SELECT id AS "sessionId", "createdAt", "updatedAt", "expiresAt", "ipAddress", "userAgent"
       FROM session s WHERE "userId" = $1 AND "expiresAt" > now() ORDER BY s."updatedAt" DESC, s.id LIMIT 200`,
    [userId],
  )
  return rows
}

/** Ends one session of a person, or all but one; answers how many that were. */
export async function endSessions(
  tx: Transaction,
  userId: string,
  which: { only: string } | { allBut: string },
): Promise<number> {
  const [condition, id] = 'only' in which ? ['id = $2', which.only] : ['id <> $2', which.allBut]
  const { rowCount } = await tx.query(`DELETE FROM session WHERE "userId" = $1 AND ${condition}`, [
    userId,
    id,
  ])
  return rowCount ?? 0
}
