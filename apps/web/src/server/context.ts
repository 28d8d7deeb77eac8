import { randomUUID } from 'node:crypto'
import { findApiToken, memberRole } from '@floe/db'
import { TRPCError } from '@trpc/server'
import { isSameOrigin, trustedOrigins } from './auth/trusted-origins'
import { orDatabaseUnreachable } from './database-check'
import { httpCodeOf } from './faults'
import { auditAddress } from './peer-address'
import type { Ports } from './ports'
import { type Account, AccountRole, mayAsMuch } from './routers/account/account.types'

export type Context = {
  ports: Ports
  /** Who asks; null without a session or a valid token. */
  actor: Account | null
  /** Who it would be now: a stream outlives sessions and roles. */
  findActor(): Promise<Account | null>
  /** Of the session that the request shows; null for a token. */
  findSessionId(): Promise<string | null>
  /** True when the console's own pages made the request. */
  sameOrigin: boolean
  ipAddress: string | null
  requestId: string
}

/** Who asks, by bearer token or session cookie. A token that is wrong is nobody, never the cookie's owner. */
export async function createContext(ports: Ports, headers: Headers): Promise<Context> {
  const find = () => actorOf(ports, headers)
  return {
    ports,
    actor: await find().catch((cause: unknown) => {
      throw new TRPCError({ code: httpCodeOf(cause) ?? 'INTERNAL_SERVER_ERROR', cause })
    }),
    findActor: find,
    findSessionId: async () => (await ports.auth.api.getSession({ headers }))?.session.id ?? null,
    sameOrigin: isSameOrigin(headers, trustedOrigins(ports.files.installation, headers)),
    ipAddress: auditAddress(headers),
    requestId: randomUUID(),
  }
}

export async function actorOf(ports: Ports, headers: Headers): Promise<Account | null> {
  const authorization = headers.get('authorization')
  if (authorization !== null) {
    const token = /^Bearer ([\x21-\x7e]{16,200})$/.exec(authorization)?.[1]
    return token ? actorOfToken(ports, token) : null
  }
  const session = await orDatabaseUnreachable(ports, () => ports.auth.api.getSession({ headers }))
  if (!session) return null
  const role = await memberRole(ports.database.pool, session.user.id)
  const known = AccountRole.safeParse(role)
  if (!known.success) return null
  const { id, name, email } = session.user
  return { kind: 'user', id, name, email, role: known.data }
}

/**
 * A token without a user is that of the machine's own command line, or was made with it: a user who may read it controls the
 * installation. One that a person made never may more than that person now does.
 */
async function actorOfToken(ports: Ports, token: string): Promise<Account | null> {
  const row = await findApiToken(ports.database.pool, token)
  if (!row) return null
  const { limited, userId, id } = row
  // its maker's name first, so that no token can be called like a person
  const name = limited ? `token of ${limited.madeByName}: ${row.name}` : row.name
  const asToken = (role: AccountRole): Account => ({ kind: 'token', id, name, email: null, role })
  const most = limited
    ? AccountRole.safeParse(limited.role)
    : { success: true as const, data: 'owner' as const }
  if (!most.success) return null
  if (userId === null) return asToken(most.data)
  const role = AccountRole.safeParse(await memberRole(ports.database.pool, userId))
  return role.success ? asToken(mayAsMuch(role.data, most.data) ? most.data : role.data) : null
}
