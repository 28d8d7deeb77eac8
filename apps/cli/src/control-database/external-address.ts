import { isIP } from 'node:net'
import { isAbsolute, join } from 'node:path'
import { controlDatabaseRoles, fault } from '@floe/domain'

/** Where a control database lies that Floe does not run, as somebody gave it. */
export type ExternalAddress = {
  /** In the one form that every client understands alike; sslrootcert says where the certificates lie now. */
  url: string
  database: string
  /** PEM file of the authorities that may sign the server's certificate; null: those that this system trusts. */
  rootCertificates: string | null
}

/**
 * Kept by the distribution's package ca-certificates. Neither Node, which has a list of its own, nor libpq, which looks in
 * a home directory, reads it unless it is named.
 */
export const systemRootCertificates = '/etc/ssl/certs/ca-certificates.crt'

const DEFAULT_PORT = 5_432
const parameters = ['sslmode', 'sslrootcert']
const example = 'postgresql://floe@db.example.com/floe?sslmode=verify-full&sslrootcert=/etc/floe/ca.pem'

function refuse(message: string, detail: string, hint = `Write it like ${example}.`): never {
  throw fault('usage.control_database', message, { detail, hint })
}

/**
 * Reads the URL of a control database that Floe does not run. Only what psql, node-postgres and Prisma's tools all take to
 * mean "verify the server's chain and name, or send nothing" passes. What was given is never repeated: it may hold a
 * password.
 */
export function readExternalAddress(text: string): ExternalAddress {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    refuse('the address of the control database is not a URL', 'It must begin with postgresql://.')
  }
  const { hostname: host, searchParams: given } = url
  if (url.protocol !== 'postgresql:' && url.protocol !== 'postgres:')
    refuse('the address of the control database is not a PostgreSQL URL', 'It must begin with postgresql://.')
  if (url.password !== '' || given.has('password'))
    refuse(
      'the URL of the control database holds a password',
      'Every user of this machine can read the arguments of a command.',
      'Change that password, and give the new one with --control-database-password-file.',
    )
  for (const name of new Set(given.keys())) {
    if (!parameters.includes(name))
      refuse(
        `the URL of the control database has the parameter "${name}"`,
        `Only ${parameters.join(' and ')} are taken: others could lead to another server, or past its verification.`,
      )
    if (given.getAll(name).length > 1)
      refuse(`the URL of the control database has "${name}" twice`, 'Programs differ in which one holds.')
  }
  const sslmode = given.get('sslmode')
  if (sslmode !== 'verify-full')
    refuse(
      'the control database must be reached with sslmode=verify-full',
      sslmode === null
        ? 'The URL has no sslmode, so that clients would take a server that is not verified, or no TLS at all.'
        : `With sslmode=${sslmode} clients would take a server whose certificate is somebody else’s.`,
      `Add sslmode=verify-full, and sslrootcert=FILE where an authority of your own signed the server’s certificate: ${example}.`,
    )
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0)
    refuse(
      'the URL of the control database has an IP address in place of a host name',
      'The server proves the name in its certificate, and node-postgres compares no address with it.',
      'Give the name in the certificate; where no name server knows it, add it to /etc/hosts.',
    )
  if (!/^[a-z0-9]([\w.-]{0,251}[a-z0-9])?$/i.test(host))
    refuse(
      'the URL of the control database does not name one host',
      host === ''
        ? 'It has no host, and a socket has no certificate.'
        : 'A host name has letters, digits, dots and dashes.',
    )
  const database = url.pathname.slice(1)
  if (!/^[\w.-]+$/.test(database))
    refuse(
      'the URL of the control database does not name a database',
      database === ''
        ? 'After the host comes the name of the database.'
        : 'The name may have letters, digits, dots, dashes and underscores.',
    )
  if (url.username === '')
    refuse(
      'the URL of the control database does not name its owner',
      'Before the host comes the role that owns the database.',
    )
  if ((Object.values(controlDatabaseRoles) as string[]).includes(decodeURIComponent(url.username)))
    refuse(
      'the owner of the control database has the name of a role of web or controller',
      'What web and controller may do is granted by the owner, and less than what an owner may.',
    )
  if (url.hash !== '')
    refuse('the URL of the control database has a fragment', 'Nothing may follow its parameters.')
  const asked = given.get('sslrootcert')
  const rootCertificates = asked === null || asked === 'system' ? null : asked
  if (rootCertificates !== null && !isAbsolute(rootCertificates))
    refuse('sslrootcert of the control database is not an absolute path', `It is "${rootCertificates}".`)
  const to = new URL(`postgresql://${host}:${url.port || DEFAULT_PORT}/${database}`)
  to.username = url.username
  to.searchParams.set('sslmode', 'verify-full')
  to.searchParams.set('sslrootcert', rootCertificates ?? systemRootCertificates)
  return { url: to.toString(), database, rootCertificates }
}

/** Where certificates that somebody named are kept: web and controller read them, the launcher alone writes them. */
export const rootCertificatesFile = ({ consoleDirectory }: { consoleDirectory: string }): string =>
  join(consoleDirectory, 'control-database-ca.pem')

/** The same server, with its authorities' certificates in another file. */
export function withRootCertificates(url: string, file: string): string {
  const to = new URL(url)
  to.searchParams.set('sslrootcert', file)
  return to.toString()
}

/** How it is shown: where it is, without what every such URL says. */
export function shownAddress(url: string): string {
  const { host, pathname } = new URL(url)
  return `${host}${pathname}`
}
