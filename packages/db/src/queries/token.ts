import { createHash } from 'node:crypto'
import type { Queryable, Transaction } from '../database'

/** What is stored of a token or a link: its sha256 in hex. */
export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex')

/** `limited`: made for a program, with a role; null: it may whatever its user may, or is the installation's own. */
export type ApiToken = {
  id: string
  name: string
  userId: string | null
  limited: { role: string; madeByName: string } | null
}

/** The API token of this secret; undefined when there is none, or it was revoked or is over. Notes its use, at most once a minute. */
export async function findApiToken(on: Queryable, token: string): Promise<ApiToken | undefined> {
  const { rows } = await on.query<ApiToken>(
    `WITH found AS (
       SELECT id, name, "userId", "lastUsedAt",
              CASE WHEN role IS NOT NULL THEN json_build_object('role', role, 'madeByName', "madeByName") END AS limited
         FROM api_token
        WHERE "tokenHash" = $1 AND "revokedAt" IS NULL AND ("expiresAt" IS NULL OR "expiresAt" > clock_timestamp())
     ), used AS (
       UPDATE api_token t SET "lastUsedAt" = now() FROM found f
        WHERE t.id = f.id AND (f."lastUsedAt" IS NULL OR f."lastUsedAt" < now() - interval '1 minute')
     )
     SELECT id, name, "userId", limited FROM found`,
    [hashToken(token)],
  )
  return rows[0]
}

/** A token that was made for a program, until a month after its end. */
export type LimitedToken = {
  tokenId: string
  name: string
  role: string
  madeByName: string
  createdAt: Date
  expiresAt: Date
  lastUsedAt: Date | null
  expired: boolean
}

/** Limited tokens that were not revoked, of one user or, with null, of all; the newest first. */
export async function listLimitedTokens(on: Queryable, userId: string | null): Promise<LimitedToken[]> {
  const { rows } = await on.query<LimitedToken>(
    `SELECT id AS "tokenId", name, role, "madeByName", "createdAt", "expiresAt", "lastUsedAt",
            "expiresAt" <= clock_timestamp() AS expired
       FROM api_token
      WHERE role IS NOT NULL AND "revokedAt" IS NULL AND "expiresAt" > now() - interval '30 days'
        AND ($1::text IS NULL OR "userId" = $1)
      ORDER BY "createdAt" DESC, id DESC`,
    [userId],
  )
  return rows
}

/** Keeps the hash of a limited token; answers when it ends. */
export async function makeLimitedToken(
  on: Queryable,
  token: {
    tokenId: string
    name: string
    secret: string
    userId: string | null
    role: string
    seconds: number
    madeByName: string
  },
): Promise<Date> {
  const { rows } = await on.query<{ expiresAt: Date }>(
    'SELECT make_api_token($1, $2, $3, $4, $5, make_interval(secs => $6), $7) AS "expiresAt"',
    [
      token.tokenId,
      token.name,
      hashToken(token.secret),
      token.userId,
      token.role,
      token.seconds,
      token.madeByName,
    ],
  )
  return (rows[0] as { expiresAt: Date }).expiresAt
}

/** Ends a limited token, of one user or, with null, of anybody. Answers its name, undefined where there is none to end. */
export async function revokeLimitedToken(
  tx: Transaction,
  tokenId: string,
  userId: string | null,
): Promise<string | undefined> {
  const { rows } = await tx.query<{ name: string }>(
    `SELECT name FROM api_token WHERE id = $1 AND role IS NOT NULL AND ($2::text IS NULL OR "userId" = $2)`,
    [tokenId, userId],
  )
  if (!rows[0]) return undefined
  const { rows: done } = await tx.query<{ revoked: boolean }>('SELECT revoke_api_token($1) AS revoked', [
    tokenId,
  ])
  return done[0]?.revoked ? rows[0].name : undefined
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
