import { randomUUID } from 'node:crypto'
import { fault } from '@floe/domain'
import type { Queryable, Transaction } from '../database'
import { checkSetupLink, consumeSetupLink, hasOwner, type SetupLinkState } from './token'

/** The role of a user in the organisation they were first a member of, undefined when they are in none. */
export async function memberRole(on: Queryable, userId: string): Promise<string | undefined> {
  const { rows } = await on.query<{ role: string }>(
    `SELECT role FROM member WHERE "userId" = $1 ORDER BY "createdAt", id LIMIT 1`,
    [userId],
  )
  return rows[0]?.role
}

/** The organisation a user was first a member of, null when in none. */
export async function firstOrganizationId(on: Queryable, userId: string): Promise<string | null> {
  const { rows } = await on.query<{ organizationId: string }>(
    `SELECT "organizationId" FROM member WHERE "userId" = $1 ORDER BY "createdAt", id LIMIT 1`,
    [userId],
  )
  return rows[0]?.organizationId ?? null
}

/** Throws what createOwner() would throw for this link as it is now; changes nothing. */
export async function requireSetupLink(on: Queryable, token: string): Promise<void> {
  const link = await checkSetupLink(on, token)
  if (link !== 'valid') throw refusedLink(link)
  if (await hasOwner(on)) throw ownerExists()
}

const refusedLink = (link: Exclude<SetupLinkState, 'valid'>) =>
  fault(`setup.link_${link}`, linkMessages[link], {
    hint: 'Sign in if you are the owner. "./floe up" prints a new link while there is no owner.',
  })
const ownerExists = () =>
  fault('setup.owner_exists', 'this installation already has an owner', { hint: 'Sign in instead.' })

/**
 * Uses up a set-up link and makes the owner with their organisation, all in the caller's transaction: either everything
 * is there and the link is used, or nothing happened. Throws setup.link_used, setup.link_expired, setup.link_unknown or
 * setup.owner_exists.
 */
export async function createOwner(
  tx: Transaction,
  owner: { token: string; name: string; email: string; passwordHash: string },
): Promise<{ userId: string }> {
  // two links used at the same moment: the second waits here and then sees the first one's owner
  await tx.query(`SELECT pg_advisory_xact_lock(hashtext('floe.create_owner'))`)
  const link = await consumeSetupLink(tx, owner.token)
  if (link !== 'valid') throw refusedLink(link)
  if (await hasOwner(tx)) throw ownerExists()
  const userId = randomUUID()
  const organizationId = randomUUID()
  await tx.query(
    `INSERT INTO "user" (id, name, email, "emailVerified", "updatedAt") VALUES ($1, $2, $3, true, now())`,
    [userId, owner.name, owner.email.toLowerCase()],
  )
  await tx.query(
    `INSERT INTO account (id, "accountId", "providerId", "userId", password, "updatedAt")
     VALUES ($1, $2, 'credential', $2, $3, now())`,
    [randomUUID(), userId, owner.passwordHash],
  )
  await tx.query(`INSERT INTO organization (id, name, slug) VALUES ($1, 'Floe', 'floe')`, [organizationId])
  await tx.query(`INSERT INTO member (id, "organizationId", "userId", role) VALUES ($1, $2, $3, 'owner')`, [
    randomUUID(),
    organizationId,
    userId,
  ])
  return { userId }
}

const linkMessages = {
  used: 'this set-up link was already used',
  expired: 'this set-up link has expired',
  unknown: 'this set-up link is not known',
} as const
