import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeTestAuthority } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDatabase } from './database'
import { listenForNotifications } from './notifications'
import { testEnginePrefix } from './testing/control-database'
import { startTlsServer } from './testing/tls-server'

const room = join(import.meta.dirname, '..')
const PASSWORD = 'the-password-of-the-role'
const directory = mkdtempSync(join(tmpdir(), 'floe-verified-'))
const authorityFile = join(directory, 'ca.pem')
/** Certificate and key of what answers. */
const identities: Record<'right' | 'wrong name' | 'foreign authority', string> = {
  right: '',
  'wrong name': '',
  'foreign authority': '',
}

beforeAll(async () => {
  const [ours, foreign] = [await makeTestAuthority(), await makeTestAuthority()]
  writeFileSync(authorityFile, ours.certificate)
  const host = { addresses: ['localhost'] }
  identities.right = await ours.host(randomUUID(), host)
  identities['wrong name'] = await ours.host(randomUUID(), { addresses: ['db.elsewhere.example'] })
  identities['foreign authority'] = await foreign.host(randomUUID(), host)
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Runs a program to its end; answers what it printed. */
const run = (file: string, args: string[], env: Record<string, string>, input = '') =>
  new Promise<string>((resolve) => {
    const child = execFile(
      file,
      args,
      { cwd: room, env: { PATH: process.env.PATH, ...env } as unknown as NodeJS.ProcessEnv, timeout: 30_000 },
      (_, stdout, stderr) => resolve(stdout + stderr),
    )
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })

const withPassword = (url: string) => url.replace('@', `:${PASSWORD}@`)

/** Each client connects once and answers what it says; none of them gets further than the password. */
const clients: Record<string, (url: string) => Promise<string>> = {
  'node-postgres': async (url) => {
    const database = createDatabase({ connectionString: withPassword(url), max: 1 })
    const said = await database.pool.query('SELECT 1').catch(String)
    await database.close()
    return String(said)
  },
  'Prisma’s client': async (url) => {
    const database = createDatabase({ connectionString: withPassword(url), max: 1 })
    const said = await database.prisma.$queryRaw`SELECT 1`.catch(String)
    await database.close()
    return String(said)
  },
  'the listener for notifications': async (url) => {
    let listener: ReturnType<typeof listenForNotifications> | undefined
    const said = await new Promise<string>((resolve) => {
      listener = listenForNotifications({
        connectionString: withPassword(url),
        channels: ['host'],
        onNotification: () => {},
        onLost: (error) => resolve(String(error)),
      })
    })
    await listener?.close()
    return said
  },
  'the launcher’s tools': (url) =>
    run(
      process.execPath,
      [join(room, 'tools/inspect-database.mjs')],
      { DATABASE_URL: url, DATABASE_PASSWORD_FILE: '-' },
      `${PASSWORD}\n`,
    ),
  // whatever engine the environment names: the native one would take any certificate
  'prisma migrate': (url) =>
    run(process.execPath, [join(room, 'tools/prisma.mjs'), 'migrate', 'deploy'], {
      DATABASE_URL: withPassword(url),
      PRISMA_SCHEMA_ENGINE_BINARY: '/bin/false',
    }),
  psql: (url) =>
    run(join(testEnginePrefix(), 'bin/psql'), ['-Xwc', 'SELECT 1', url], { PGPASSWORD: PASSWORD }),
}

/** What the client said, and what was said to the server, which gives up when it has the password. */
async function attempt(client: string, identity: string | null) {
  const server = await startTlsServer(identity)
  const asked = clients[client]?.(
    `postgresql://floe_web@localhost:${server.port}/floe?sslmode=verify-full&sslrootcert=${encodeURIComponent(authorityFile)}`,
  ) as Promise<string>
  let ended = false
  void asked.finally(() => {
    ended = true
  })
  // the right one is left waiting for an answer to its password
  await expect.poll(() => ended || server.received().includes(PASSWORD), { timeout: 20_000 }).toBe(true)
  await server.close()
  return { said: await asked, received: server.received() }
}

describe.each(Object.keys(clients))('%s', (client) => {
  test('sends its role and its password to the server with the right certificate', async () => {
    const { received } = await attempt(client, identities.right)
    expect(received).toContain('floe_web')
    expect(received).toContain(PASSWORD)
  })

  test.each(['wrong name', 'foreign authority'] as const)(
    'sends nothing to a server with a certificate of a %s',
    async (which) => {
      const { said, received } = await attempt(client, identities[which])
      expect(received).toBe('')
      expect(said).toMatch(
        which === 'wrong name' ? /altnames|does not match host name|P1011|TLS/i : /certificate|P1011|TLS/i,
      )
    },
  )

  test('sends nothing to a server that has no TLS', async () => {
    const { said, received } = await attempt(client, null)
    expect(received).toBe('')
    expect(said).toMatch(/does not support SSL|SSL/)
  })
})
