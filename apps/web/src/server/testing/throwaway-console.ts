import { randomBytes, randomUUID } from 'node:crypto'
import { hashToken } from '@floe/db'
import { createTestDatabase } from '@floe/db/testing'
import type {} from '@floe/db/testing/engine-for-suite'
import { createHTTPServer } from '@trpc/server/adapters/standalone'
import type { AuthParts } from '../auth/auth'
import { createContext } from '../context'
import { createPorts, type Ports } from '../ports'
import { appRouter } from '../router'
import type { AccountRole } from '../routers/account/account.types'
import { passphrases } from './passphrases'

/** A console on a control database of its own, with no page and no port until one is asked for. */
export async function throwawayConsole(options: {
  engine: string
  authority?: string
  /** What it shows agents; a function where the test changes it. */
  identity?: string | (() => string)
  /** Who is over the limits of sign-ins waits for this. */
  late?: AuthParts['late']
  /** Passphrases are hashed and compared as outside tests. */
  hashEachTime?: true
}) {
  const database = await createTestDatabase(options.engine)
  const webUrl = 'http://127.0.0.1:3999'
  const files = {
    home: '/nowhere',
    installation: {
      version: 1 as const,
      installationId: randomUUID(),
      hostId: randomUUID(),
      hostName: 'test-host',
      hostAddress: '127.0.0.1',
      webAddress: '127.0.0.1',
      webPort: 3999,
      webUrl,
      agentPort: 1,
      instancePorts: { from: 1, to: 1 },
      enginePrefix: '/nowhere',
      instancesDirectory: '/nowhere',
      socketDirectory: '/nowhere',
      engineUser: null,
      webSocket: '/nowhere',
      controlDatabase: { name: 'x', socketDirectory: '/nowhere', port: 1, url: null },
      users: null,
      consoleDirectory: '/nowhere',
    },
    authority: options.authority ?? '',
    identity: () => (typeof options.identity === 'function' ? options.identity() : (options.identity ?? '')),
    authSecret: randomBytes(32).toString('hex'),
  }
  const parts = { late: options.late, passphrases: options.hashEachTime ? undefined : passphrases }
  const newPorts = () => createPorts(files, database.as.web.connectionString, parts)
  const ports = newPorts()
  return {
    ports,
    database,
    /** Another console process on the same control database. */
    newPorts,
    webUrl,
    /** A caller as a request with these headers would be; of a console that may wait less long, or with other agents. */
    async callerOf(
      headers: Record<string, string> = {},
      other: Partial<Pick<Ports, 'checkTimes' | 'agents'>> = {},
    ) {
      // patient unless a test says otherwise: what it waits for is the test's own doing
      const checkTimes = { takenMs: 60_000, answeredMs: 60_000 }
      return appRouter.createCaller(
        await createContext({ ...ports, checkTimes, ...other }, new Headers(headers)),
      )
    },
    /** A user with a role and a signed-in session; answers the cookie. */
    async signedIn(role: AccountRole) {
      const email = `${role}-${randomBytes(4).toString('hex')}@example.org`
      const userId = await insertUser(database, { email, role })
      const response = await ports.auth.handler(signInRequest(webUrl, email, passphrase))
      if (!response.ok) throw new Error(`sign-in answered ${response.status}: ${await response.text()}`)
      const cookie = response.headers
        .getSetCookie()
        .map((line) => line.split(';')[0])
        .join('; ')
      return { userId, email, cookie, headers: { cookie, origin: webUrl, 'sec-fetch-site': 'same-origin' } }
    },
    /** The command line's token, as `./floe up` makes it. */
    async token() {
      const token = randomBytes(32).toString('base64url')
      await database.pool.query(
        `INSERT INTO api_token (id, name, "tokenHash") VALUES (gen_random_uuid(), 'floe', $1)`,
        [hashToken(token)],
      )
      return { authorization: `Bearer ${token}` }
    },
    async close() {
      await ports.close()
      await database.drop()
    },
  }
}
export type ThrowawayConsole = Awaited<ReturnType<typeof throwawayConsole>>

/** An event of a subscription called without a wire: tRPC's types say an object, what comes is [id, data]. */
export const untracked = <T>(event: { id: string; data: T }) => event as unknown as [id: string, data: T]

export const passphrase = 'correct horse battery staple'

export const signInRequest = (
  webUrl: string,
  email: string,
  password: string,
  headers: Record<string, string> = {},
) =>
  new Request(`${webUrl}/api/auth/sign-in/email`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      origin: webUrl,
      'x-forwarded-for': '127.0.0.1',
      ...headers,
    },
    body: JSON.stringify({ email, password }),
  })

async function insertUser(
  database: Awaited<ReturnType<typeof createTestDatabase>>,
  user: { email: string; role: string },
): Promise<string> {
  const id = randomUUID()
  const organizationId = 'organization-under-test'
  await database.pool.query(
    `INSERT INTO "user" (id, name, email, "emailVerified", "updatedAt") VALUES ($1, $2, $3, true, now())`,
    [id, `The ${user.role}`, user.email],
  )
  await database.pool.query(
    `INSERT INTO account (id, "accountId", "providerId", "userId", password, "updatedAt")
     VALUES ($1, $2, 'credential', $2, $3, now())`,
    [randomUUID(), id, await passphrases.hash(passphrase)],
  )
  await database.pool.query(
    `INSERT INTO organization (id, name, slug) VALUES ($1, 'Test', 'test') ON CONFLICT DO NOTHING`,
    [organizationId],
  )
  await database.pool.query(
    `INSERT INTO member (id, "organizationId", "userId", role) VALUES ($1, $2, $3, $4)`,
    [randomUUID(), organizationId, id, user.role],
  )
  return id
}

/** Serves a console's API over HTTP on a port, until closed; open streams are cut. */
export async function serveConsole(ports: ThrowawayConsole['ports'], port = 0) {
  const server = createHTTPServer({
    router: appRouter,
    basePath: '/api/trpc/',
    createContext: ({ req }) =>
      createContext(
        ports,
        new Headers(
          Object.entries(req.headers).flatMap(([k, v]) => (v === undefined ? [] : [[k, String(v)]])),
        ),
      ),
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const address = server.address() as { port: number }
  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}/api/trpc`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
