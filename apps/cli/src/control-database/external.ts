import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { scramVerifier } from '@floe/authority/scram-verifier'
import {
  controlDatabaseRoles,
  controlDatabaseUrl,
  FaultError,
  fault,
  type Installation,
  secretFiles,
} from '@floe/domain'
import { replaceFile } from '@floe/host/replace-file'
import { z } from 'zod'
import { checkoutDirectory, type Home, readSecret } from '../installation/home'
import { runProgram } from '../run-program'
import { rootCertificatesFile, systemRootCertificates } from './external-address'
import { connectionLimits } from './initialise'
import { ConnectionError, connectionFault, DatabaseFacts } from './judge-external'

const FILE_BYTES_MAX = 1 << 20
const PASSWORD_BYTES_MAX = 1_024

const Inspected = z.object({ facts: DatabaseFacts })
const Refused = z.object({ error: ConnectionError })

/**
 * Environment of the tools of packages/db: none of the variables by which node-postgres or Node itself could be led to
 * another server, or past the verification of its certificate.
 */
export function toolEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(PG[A-Z]+|DATABASE_[A-Z_]+|NODE_TLS_REJECT_UNAUTHORIZED)$/.test(name),
    ),
  )
}

/** What the tools get to know of a control database that Floe does not run: they come as its owner. */
export const ownerEnvironment = (home: Home, url: string): NodeJS.ProcessEnv => ({
  ...toolEnvironment(),
  DATABASE_URL: url,
  DATABASE_PASSWORD_FILE: join(home.secrets, secretFiles.controlOwnerPassword),
})

/** Logs in, which is all that web and controller may; throws the fault that says why it failed. */
async function logIn(url: string, password: string, words: string[] = ['login']): Promise<unknown> {
  const { stdout, tail } = await runProgram(process.execPath, ['tools/inspect-database.mjs', ...words], {
    cwd: join(checkoutDirectory(), 'packages/db'),
    env: { ...toolEnvironment(), DATABASE_URL: url, DATABASE_PASSWORD_FILE: '-' },
    input: password,
  })
  let answer: unknown
  try {
    answer = JSON.parse(stdout)
  } catch {
    answer = { error: { code: '', message: tail.slice(-3).join('\n') } }
  }
  const refused = Refused.safeParse(answer)
  if (refused.success) throw new FaultError(connectionFault(url, refused.data.error))
  return answer
}

/** Logs in as the owner and looks, changing nothing. Throws the fault that says why that failed. */
export const inspectDatabase = async (url: string, password: string): Promise<DatabaseFacts> =>
  Inspected.parse(await logIn(url, password, [])).facts

/** The password of the owner, from a file, or of "-" from standard input. One newline at its end is not part of it. */
export function readOwnerPassword(file: string): string {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (cause) {
    throw fault('usage.no_password', 'could not read the password of the control database’s owner', {
      detail: cause instanceof Error ? cause.message : String(cause),
      hint: 'Name a readable file, or "-" for standard input.',
      cause,
    })
  }
  const password = text.replace(/\r?\n$/, '')
  if (password === '' || password.length > PASSWORD_BYTES_MAX || /[\r\n\0]/.test(password))
    throw fault('usage.no_password', 'there is no password of the control database’s owner', {
      detail:
        password === '' ? 'The input is empty.' : 'What was read is not one line of a password’s length.',
      hint: 'The file, or standard input, must hold the password and nothing else.',
    })
  return password
}

/** The password of the owner as an earlier run kept it; null where none did. */
export const keptOwnerPassword = (home: Home): string | null =>
  existsSync(join(home.secrets, secretFiles.controlOwnerPassword))
    ? readSecret(home, 'controlOwnerPassword')
    : null

/** The certificates in a PEM file, checked for being that. */
export function readRootCertificates(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    throw fault('usage.control_database', `could not read "${file}"`, {
      detail: cause instanceof Error ? cause.message : String(cause),
      hint:
        file === systemRootCertificates
          ? 'Install the package ca-certificates, or name a file with sslrootcert.'
          : 'sslrootcert names a PEM file with the certificates of the authorities that sign the server’s certificate.',
      cause,
    })
  }
  try {
    if (text.length > FILE_BYTES_MAX) throw new Error(`It is larger than ${FILE_BYTES_MAX} bytes.`)
    new X509Certificate(text)
    if (/PRIVATE KEY/.test(text))
      throw new Error('It holds a private key, and is about to be read by others.')
  } catch (cause) {
    throw fault('usage.control_database', `"${file}" does not hold certificates`, {
      detail: cause instanceof Error ? cause.message : String(cause),
      hint: 'sslrootcert names a PEM file with the certificates of the authorities that sign the server’s certificate.',
      cause,
    })
  }
  return text
}

/** Keeps what was given beside the URL: the authorities’ certificates, and the owner’s password for the launcher alone. */
export function keepExternal(
  home: Home,
  installation: Installation,
  given: { rootCertificates?: string; ownerPassword?: string },
): void {
  const file = rootCertificatesFile(installation)
  if (
    given.rootCertificates !== undefined &&
    (!existsSync(file) || readFileSync(file, 'utf8') !== given.rootCertificates)
  )
    replaceFile(file, given.rootCertificates, { mode: 0o644 })
  if (given.ownerPassword !== undefined && given.ownerPassword !== keptOwnerPassword(home))
    replaceFile(join(home.secrets, secretFiles.controlOwnerPassword), `${given.ownerPassword}\n`)
}

/**
 * Makes the database this installation's own and gives web and controller roles there, whose passwords leave this machine
 * as SCRAM verifiers only; then logs in as each.
 */
export async function claimExternalDatabase(
  home: Home,
  installation: Installation,
  url: string,
): Promise<void> {
  const secretOf = { web: 'controlWebPassword', controller: 'controlControllerPassword' } as const
  const programs = ['web', 'controller'] as const
  const { status, tail } = await runProgram(process.execPath, ['tools/claim-database.mjs'], {
    cwd: join(checkoutDirectory(), 'packages/db'),
    env: ownerEnvironment(home, url),
    input: JSON.stringify({
      installationId: installation.installationId,
      roles: Object.fromEntries(
        programs.map((name) => [
          controlDatabaseRoles[name],
          {
            verifier: scramVerifier(readSecret(home, secretOf[name])),
            connectionLimit: connectionLimits[controlDatabaseRoles[name]],
          },
        ]),
      ),
    }),
  })
  if (status !== 0)
    throw fault('control_database.not_claimed', 'could not prepare the control database', {
      detail: tail.slice(-8).join('\n'),
      hint: 'The database is as it was.',
    })
}

/** Logs in as web and as controller do, once they may: what keeps them out is said here, and not in their logs. */
export async function requireLogins(home: Home, installation: Installation): Promise<void> {
  for (const [name, secret] of [
    ['web', 'controlWebPassword'],
    ['controller', 'controlControllerPassword'],
  ] as const)
    await logIn(controlDatabaseUrl(installation, controlDatabaseRoles[name]), readSecret(home, secret))
}

export type ExternalState = { state: 'reachable' | 'unreachable'; because: string | null }

/** Whether the owner can log in now, and if not why. */
export async function externalState(home: Home, url: string): Promise<ExternalState> {
  try {
    await inspectDatabase(url, keptOwnerPassword(home) ?? '')
    return { state: 'reachable', because: null }
  } catch (error) {
    if (!(error instanceof FaultError)) throw error
    const { message, detail } = error.fault
    return { state: 'unreachable', because: [message, detail].filter(Boolean).join(': ') }
  }
}
