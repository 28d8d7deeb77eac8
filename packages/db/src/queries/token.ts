import { createHash } from 'node:crypto'
import type { Queryable } from '../database'

/** What is stored of a token or a link: its sha256 in hex. */
export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex')

export type ApiToken = { id: string; name: string; userId: string | null }

/** The API token of this secret, undefined when there is none or it was revoked. Notes its use, at most once a minute. */
export async function findApiToken(on: Queryable, token: string): Promise<ApiToken | undefined> {
  const { rows } = await on.query<ApiToken>(
    `WITH found AS (
       SELECT id, name, "userId", "lastUsedAt" FROM api_token WHERE "tokenHash" = $1 AND "revokedAt" IS NULL
     ), used AS (
       UPDATE api_token t SET "lastUsedAt" = now() FROM found f
        WHERE t.id = f.id AND (f."lastUsedAt" IS NULL OR f."lastUsedAt" < now() - interval '1 minute')
     )
     SELECT id, name, "userId" FROM found`,
    [hashToken(token)],
  )
  return rows[0]
}

export type SetupLinkState = 'valid' | 'used' | 'expired' | 'unknown'

/** Whether a set-up link can still be used; changes nothing. */
export async function checkSetupLink(on: Queryable, token: string): Promise<SetupLinkState> {
  const { rows } = await on.query<{ state: SetupLinkState }>(
    `SELECT CASE WHEN "usedAt" IS NOT NULL THEN 'used' WHEN "expiresAt" <= now() THEN 'expired' ELSE 'valid' END AS state
       FROM setup_link WHERE "tokenHash" = $1`,
    [hashToken(token)],
  )
  return rows[0]?.state ?? 'unknown'
}

/** Uses up a set-up link: `valid` exactly once, however many ask at the same time; else why not. */
export async function consumeSetupLink(on: Queryable, token: string): Promise<SetupLinkState> {
  const { rowCount } = await on.query(
    `UPDATE setup_link SET "usedAt" = now() WHERE "tokenHash" = $1 AND "usedAt" IS NULL AND "expiresAt" > now()`,
    [hashToken(token)],
  )
  return rowCount === 1 ? 'valid' : checkSetupLink(on, token)
}

/** True once somebody owns the installation. */
export async function hasOwner(on: Queryable): Promise<boolean> {
  const { rows } = await on.query<{ owned: boolean }>(
    `SELECT EXISTS (SELECT 1 FROM member WHERE role = 'owner') AS owned`,
  )
  return rows[0]?.owned ?? false
}
