import { prismaAdapter } from '@better-auth/prisma-adapter'
import { type Database, firstOrganizationId, insertAuditEvent } from '@floe/db'
import { betterAuth } from 'better-auth'
import { APIError, createAuthMiddleware } from 'better-auth/api'
import { organization } from 'better-auth/plugins'
import type { InstallationFiles } from '../installation'
import { log } from '../log'
import { auditAddress, PEER_HEADER, peerAddress } from '../peer-address'
import { PASSPHRASE_MAX, PASSPHRASE_MIN } from '../routers/setup/complete.types'
import { accessControl, roles } from './roles'
import { type Attempt, SignInLimit } from './sign-in-limit'
import { trustedOrigins } from './trusted-origins'

const SIGN_IN = '/sign-in/email'

/**
 * Sessions by better-auth: e-mail and passphrase, cookies, at most so many attempts. Nobody signs up here; the owner is
 * made by the one-time set-up link (setup.complete).
 */
export function createAuth(files: InstallationFiles, database: Database) {
  const { installation, authSecret } = files
  const limit = new SignInLimit()
  return betterAuth({
    appName: 'Floe',
    baseURL: installation.webUrl,
    secret: authSecret,
    trustedOrigins: (request) => trustedOrigins(installation, request?.headers),
    telemetry: { enabled: false },
    database: prismaAdapter(database.prisma, { provider: 'postgresql' }),
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: PASSPHRASE_MIN,
      maxPasswordLength: PASSPHRASE_MAX,
    },
    session: { expiresIn: 7 * 86_400, updateAge: 86_400 },
    rateLimit: {
      enabled: true,
      window: 10,
      max: 100,
      // behind a proxy everybody is one peer; failures are counted by SignInLimit
      customRules: { [SIGN_IN]: { window: 60, max: 300 }, '/get-session': false },
    },
    advanced: {
      // said aloud, because the default depends on NODE_ENV
      disableOriginCheck: false,
      disableCSRFCheck: false,
      cookiePrefix: 'floe',
      // never a header that the client chooses
      ipAddress: { ipAddressHeaders: [PEER_HEADER] },
      useSecureCookies: installation.webUrl.startsWith('https:'),
      defaultCookieAttributes: { sameSite: 'lax', httpOnly: true },
    },
    logger: {
      log: (level, message) => log[level === 'error' ? 'error' : 'warn']({ event: 'auth.message', message }),
    },
    databaseHooks: {
      session: {
        create: {
          before: async (session) => ({
            data: {
              ...session,
              activeOrganizationId: await firstOrganizationId(database.pool, session.userId),
            },
          }),
        },
      },
    },
    hooks: {
      before: createAuthMiddleware(async (ctx) => {
        if (ctx.path !== SIGN_IN) return
        const waitMs = limit.waitMs(attemptOf(ctx))
        if (waitMs > 0)
          throw new APIError('TOO_MANY_REQUESTS', {
            message: `too many failed attempts; try again in ${Math.ceil(waitMs / 1_000)} s`,
          })
      }),
      after: createAuthMiddleware(async (ctx) => {
        if (ctx.path !== SIGN_IN) return
        const attempt = attemptOf(ctx)
        const made = ctx.context.newSession
        const unwritten = made ? 0 : limit.failed(attempt)
        if (made) limit.succeeded(attempt)
        if (unwritten === null) return
        await insertAuditEvent(database.pool, {
          actor: made ? { id: made.user.id, name: made.user.name } : { id: 'anonymous', name: attempt.email },
          action: 'session.sign-in',
          outcome: made ? 'allowed' : 'denied',
          objectKind: 'user',
          objectId: made?.user.id,
          detail: unwritten > 0 ? { failuresBeforeWithoutRow: unwritten } : undefined,
          ipAddress: auditAddress(ctx.headers),
        })
      }),
    },
    plugins: [
      organization({
        ac: accessControl,
        roles,
        creatorRole: 'owner',
        allowUserToCreateOrganization: false,
        disableOrganizationDeletion: true,
      }),
    ],
  })
}
export type Auth = ReturnType<typeof createAuth>

function attemptOf(ctx: { body: unknown; headers: Headers | undefined }): Attempt {
  const email = (ctx.body as { email?: unknown } | undefined)?.email
  return { email: typeof email === 'string' ? email.slice(0, 200) : '', peer: peerAddress(ctx.headers) }
}
