import { prismaAdapter } from '@better-auth/prisma-adapter'
import { type Database, firstOrganizationId } from '@floe/db'
import { PersonName } from '@floe/domain'
import { betterAuth } from 'better-auth'
import { organization } from 'better-auth/plugins'
import type { DenialRows } from '../denial-rows'
import type { InstallationFiles } from '../installation'
import { log } from '../log'
import { PEER_HEADER } from '../peer-address'
import { PASSPHRASE_MAX, PASSPHRASE_MIN } from '../routers/setup/setup.types'
import { AUTH_PATH, createFrontDoor } from './front-door'
import { KnownDevices } from './known-device'
import type { LateChecks } from './late-checks'
import { accessControl, roles } from './roles'
import { trustedOrigins } from './trusted-origins'

/** What tests replace: nothing of the installation can. */
export type AuthParts = {
  /** Of another pace than the console's. */
  late?: LateChecks | undefined
  /** Instead of better-auth's own. */
  passphrases?:
    | {
        hash(passphrase: string): Promise<string>
        verify(of: { hash: string; password: string }): Promise<boolean>
      }
    | undefined
}

/**
 * Sessions by better-auth: e-mail and passphrase, cookies. Nobody signs up here; the owner is made by the one-time set-up
 * link (setup.complete). `handler` is the front door; accounts are changed by procedures (account.*), never through it.
 */
export function createAuth(
  files: InstallationFiles,
  database: Database,
  denialRows: DenialRows,
  { late, passphrases }: AuthParts = {},
) {
  const { installation, authSecret } = files
  const secure = installation.webUrl.startsWith('https:')
  const auth = betterAuth({
    appName: 'Floe',
    baseURL: installation.webUrl,
    basePath: AUTH_PATH,
    secret: authSecret,
    trustedOrigins: (request) => trustedOrigins(installation, request?.headers),
    telemetry: { enabled: false },
    database: prismaAdapter(database.prisma, { provider: 'postgresql' }),
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: PASSPHRASE_MIN,
      maxPasswordLength: PASSPHRASE_MAX,
      ...(passphrases && { password: passphrases }),
    },
    // what a person's list of sessions shows is no older than this
    session: { expiresIn: 7 * 86_400, updateAge: 600 },
    // by address, and everybody behind a proxy has one: SignInLimit counts what is worth counting
    rateLimit: { enabled: false },
    advanced: {
      // said aloud, because the default depends on NODE_ENV
      disableOriginCheck: false,
      disableCSRFCheck: false,
      cookiePrefix: 'floe',
      // never a header that the client chooses
      ipAddress: { ipAddressHeaders: [PEER_HEADER] },
      useSecureCookies: secure,
      defaultCookieAttributes: { sameSite: 'lax', httpOnly: true },
    },
    logger: {
      log: (level, message) => log[level === 'error' ? 'error' : 'warn']('auth.message', { message }),
    },
    databaseHooks: {
      // nothing that is open does either; the rule holds should that change
      user: { create: { before: withPersonName }, update: { before: withPersonName } },
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
  return {
    api: auth.api,
    handler: createFrontDoor({
      handler: auth.handler,
      findPerson: async (headers) => (await auth.api.getSession({ headers }))?.user ?? null,
      database,
      denialRows,
      devices: new KnownDevices(authSecret, secure),
      late,
    }),
  }
}
/** A name that better-auth is to write, as the console takes names. */
async function withPersonName<User extends { name?: string | undefined }>(user: User) {
  return { data: user.name === undefined ? user : { ...user, name: PersonName.parse(user.name) } }
}

export type Auth = ReturnType<typeof createAuth>
