// How the tools of the launcher reach the control database.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import pg from 'pg'

const CONNECT_MS = 10_000

/**
 * Which database, and as whom.
 * @typedef {{ connectionString: string, owner?: string | undefined, password?: string | undefined }} Environment
 */

/**
 * A connection as the owner of the console's objects. `owner` is the role that they belong to, where the connection is a
 * superuser's: what is made then belongs to that role. A socket is named as libpq does it:
 * `postgresql://floe@localhost/console?host=/run/floe/control&port=4302`. Prisma's `schema` is not passed on. With
 * `sslmode=verify-full&sslrootcert=FILE` nothing is sent before the server's chain and name were verified.
 *
 * @param {Environment & { applicationName: string }} options
 * @returns {Promise<import('pg').Client>}
 */
export async function connect({ connectionString, owner, password, applicationName }) {
  const url = urlOf(connectionString)
  if (password !== undefined) url.password = encodeURIComponent(password)
  const client = new pg.Client({
    connectionString: url.toString(),
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_MS,
  })
  await client.connect()
  try {
    if (owner) await client.query(`SET ROLE ${client.escapeIdentifier(owner)}`)
    return client
  } catch (error) {
    await client.end()
    throw error
  }
}

/**
 * The schema of a connection string that Prisma understands, too.
 *
 * @param {string} connectionString
 * @returns {string}
 */
export function schemaOf(connectionString) {
  return parsed(connectionString).searchParams.get('schema') ?? 'public'
}

function urlOf(connectionString) {
  const url = parsed(connectionString)
  url.searchParams.delete('schema')
  return url
}

// libpq takes a URL without a host, which WHATWG's does not beside a user
const parsed = (connectionString) =>
  new URL(connectionString.replace(/^([a-z]+:\/\/[^/?]*@)\//, '$1localhost/'))

/**
 * What the launcher says in the environment: DATABASE_URL; DATABASE_OWNER, where that is a superuser's; and
 * DATABASE_PASSWORD_FILE, where the server asks for a password, so that it stands in no argument and no environment ("-" is
 * standard input). Ends with 2 where there is no DATABASE_URL.
 *
 * @returns {Environment}
 */
export function environmentOfTool() {
  const { DATABASE_URL: connectionString, DATABASE_OWNER: owner, DATABASE_PASSWORD_FILE: file } = process.env
  if (!connectionString) {
    console.error('DATABASE_URL is not set')
    process.exit(2)
  }
  const password = file ? readFileSync(file === '-' ? 0 : file, 'utf8').replace(/\r?\n$/, '') : undefined
  return { connectionString, owner, password }
}

/**
 * Runs `body` where this file is the program that was started. Ends with 2 where it was called wrongly, 1 where it failed.
 *
 * @param {string} file
 * @param {(environment: Environment) => Promise<void>} body
 */
export async function runAsTool(file, body) {
  if (!process.argv[1] || resolve(process.argv[1]) !== file) return
  try {
    await body(environmentOfTool())
  } catch (error) {
    console.error(`error: ${error.message}`)
    process.exit(1)
  }
}
