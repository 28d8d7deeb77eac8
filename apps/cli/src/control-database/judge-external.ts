import { controlDatabaseRoles, type Fault, fault } from '@floe/domain'
import { z } from 'zod'
import { shownAddress } from './external-address'

/** The console's schema and queries are tested with this release and with the engine's own. */
const SERVER_VERSION_MIN = 15

/** What tools/inspect-database.mjs of packages/db answers. */
export const DatabaseFacts = z.object({
  serverVersion: z.string(),
  serverVersionNumber: z.number(),
  database: z.string(),
  role: z.string(),
  owner: z.string(),
  ownsDatabase: z.boolean(),
  createsRoles: z.boolean(),
  readOnly: z.boolean(),
  encoding: z.string(),
  encrypted: z.boolean(),
  /** Of the installation that it belongs to. */
  installationId: z.string().nullable(),
  /** The first few tables and the like, where it belongs to none. */
  relations: z.array(z.string()),
  /** Those of web and controller that the server has, and whom each says it was made for. */
  roles: z.array(z.object({ name: z.string(), mark: z.string().nullable() })),
})
export type DatabaseFacts = z.infer<typeof DatabaseFacts>
export const ConnectionError = z.object({ code: z.string(), message: z.string() })
export type ConnectionError = z.infer<typeof ConnectionError>

/** Why the control database could not be used, of the error of node-postgres. */
export function connectionFault(url: string, { code, message }: ConnectionError): Fault {
  const { hostname, username } = new URL(url)
  const role = decodeURIComponent(username)
  const where = `the control database at ${shownAddress(url)}`
  const file = new URL(url).searchParams.get('sslrootcert')
  const of = (name: string, text: string, hint: string): Fault =>
    fault(`control_database.${name}`, text, { detail: `${message.replace(/[.\s]*$/, '')}.`, hint }).fault
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return of(
      'not_verified',
      `the server of ${where} has a certificate for another name`,
      `Use a name that stands in its certificate, or give the server a certificate for "${hostname}". No password was sent.`,
    )
  if (/^(SELF_SIGNED|UNABLE_TO_|DEPTH_ZERO|CERT_|INVALID_CA|HOSTNAME_MISMATCH)/.test(code))
    return of(
      'not_verified',
      `the certificate of the server of ${where} could not be verified`,
      `It must be signed by an authority in "${file}" and be valid now; name another file with sslrootcert. No password was sent.`,
    )
  if (/does not support SSL/.test(message))
    return of(
      'not_verified',
      `the server of ${where} does not offer TLS`,
      'Turn "ssl" on there. No password was sent.',
    )
  if (code.startsWith('28'))
    return of(
      'no_login',
      `role "${role}" could not log in to ${where}`,
      'Check its password, and that pg_hba.conf of the server lets it in over TLS with a password (hostssl, scram-sha-256).',
    )
  if (code === '3D000')
    return of(
      'missing',
      `${where} does not exist`,
      `Create it on that server: CREATE DATABASE … OWNER ${role}.`,
    )
  return of(
    'unreachable',
    `could not reach ${where}`,
    'Check the name, the port, the way there and that the server runs; then run this again.',
  )
}

/**
 * Refuses a database that cannot be this installation's control database. `claimed`: it has been, so that an empty one
 * is not the same any more.
 */
export function requireFit(
  facts: DatabaseFacts,
  { url, installationId, claimed }: { url: string; installationId: string; claimed: boolean },
): void {
  const where = shownAddress(url)
  const refuse = (name: string, message: string, detail: string, hint: string): never => {
    throw fault(`control_database.${name}`, message, { detail, hint })
  }
  const { serverVersion, role } = facts
  if (facts.serverVersionNumber < SERVER_VERSION_MIN * 10_000)
    refuse(
      'too_old',
      `the server of the control database is too old: PostgreSQL ${serverVersion}`,
      `Floe needs PostgreSQL ${SERVER_VERSION_MIN} or later there.`,
      'Upgrade that server, or name another one.',
    )
  if (!facts.encrypted)
    refuse(
      'not_verified',
      'the connection to the control database is not encrypted',
      `The server at ${where} says so of this connection.`,
      'A proxy before the server ends TLS; name the server itself.',
    )
  if (facts.readOnly)
    refuse(
      'read_only',
      `the control database at ${where} cannot be written`,
      'It is a standby, or its transactions are read-only by default.',
      'Name the primary.',
    )
  if (facts.encoding !== 'UTF8')
    refuse(
      'encoding',
      `the control database at ${where} has the encoding ${facts.encoding}`,
      'Floe keeps text in UTF8.',
      "Create it again: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
    )
  if (!facts.ownsDatabase)
    refuse(
      'not_owner',
      `role "${role}" does not own the control database at ${where}`,
      `Its owner is "${facts.owner}".`,
      `Run there: ALTER DATABASE ${facts.database} OWNER TO ${role}; or name the owner in the URL.`,
    )
  if (facts.installationId !== null && facts.installationId !== installationId)
    refuse(
      'of_another',
      `the database at ${where} is another installation’s`,
      `It belongs to the installation ${facts.installationId}; this one is ${installationId}.`,
      'Name an empty database, or set FLOE_HOME to the directory of that installation.',
    )
  if (facts.installationId === null && claimed)
    refuse(
      'emptied',
      `the database at ${where} does not hold this installation’s data`,
      'This installation has used a control database already, and an empty one would lose hosts, instances, people and history.',
      'Restore a dump of it there as its owner, or name the database that has the data.',
    )
  if (facts.installationId === null && facts.relations.length > 0)
    refuse(
      'not_empty',
      `the database at ${where} is not empty`,
      `It has ${facts.relations.slice(0, 3).join(', ')}${facts.relations.length > 3 ? ' and more' : ''}.`,
      'Name an empty database that nobody else uses.',
    )
  const foreign = facts.roles.find((r) => r.mark !== `Floe installation ${installationId}`)
  if (foreign)
    refuse(
      'role_in_use',
      `the server of the control database has a role "${foreign.name}" that was not made for this installation`,
      foreign.mark === null
        ? 'Roles are the whole server’s, and nothing says for whom it was made.'
        : `Roles are the whole server’s. It says: ${foreign.mark}.`,
      'One server can hold the control database of one installation. Name another server, or drop the role if nobody uses it.',
    )
  if (facts.roles.length < Object.keys(controlDatabaseRoles).length && !facts.createsRoles)
    refuse(
      'no_createrole',
      `role "${role}" may not create the roles of web and controller`,
      `They are ${Object.values(controlDatabaseRoles).join(' and ')}, which own nothing.`,
      `Run there: ALTER ROLE ${role} CREATEROLE.`,
    )
}
