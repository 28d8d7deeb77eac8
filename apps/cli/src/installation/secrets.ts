import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { secretFiles } from '@floe/domain'
import { agentCertificateIsGood, issueAgentCertificate, makeAuthority } from './certificate'
import { type Home, writeWhole } from './home'

const random = ['agentReadKey', 'agentTaskKey', 'authSecret', 'cliToken', 'controlPassword'] as const

/**
 * Makes the secrets that are missing and renews the agent's certificate when it is about to end or does not name this
 * host. What is there and good stays as it is, so that running processes keep working. Answers what was made.
 */
export async function ensureSecrets(home: Home): Promise<string[]> {
  const made: string[] = []
  const fileOf = (name: keyof typeof secretFiles) => join(home.secrets, secretFiles[name])
  const write = (name: keyof typeof secretFiles, text: string) => {
    writeWhole(fileOf(name), text, 0o600)
    made.push(secretFiles[name])
  }
  chmodSync(home.secrets, 0o700)
  for (const name of random)
    if (!existsSync(fileOf(name))) write(name, `${randomBytes(32).toString('base64url')}\n`)

  const text = (name: keyof typeof secretFiles) =>
    existsSync(fileOf(name)) ? readFileSync(fileOf(name), 'utf8') : null
  let authority = text('authority')
  let authorityKey = text('authorityKey')
  if (authority === null || authorityKey === null) {
    const fresh = await makeAuthority()
    authority = fresh.certificate
    authorityKey = fresh.key
    write('authorityKey', authorityKey)
    write('authority', authority)
  }
  const certificate = text('agentCertificate')
  const key = text('agentCertificateKey')
  const names = [...new Set(['localhost', hostname()])]
  if (certificate === null || key === null || !agentCertificateIsGood(certificate, key, authority, names)) {
    const fresh = await issueAgentCertificate({ certificate: authority, key: authorityKey }, names)
    write('agentCertificateKey', fresh.key)
    write('agentCertificate', fresh.certificate)
  }
  return made
}
