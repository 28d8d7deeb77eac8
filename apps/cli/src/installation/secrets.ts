import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { identityIsGood, issueClientIdentity, issueHostIdentity, makeAuthority } from '@floe/authority'
import {
  type AgentRight,
  type HostConfiguration,
  hostUri,
  LOOPBACK,
  rightUri,
  secretFiles,
} from '@floe/domain'
import { type Home, writeWhole } from './home'

const random = ['authSecret', 'cliToken', 'controlPassword'] as const

/** What certificates replaced: keys of the agent that console and agent shared, and a key in a file of its own. */
const former = ['agent-read.key', 'agent-task.key', 'agent.key']

/**
 * Makes the secrets that are missing, and new certificates of this machine's agent, web and controller where they are due
 * for renewal, or say something else than they should. What is there and good stays as it is, so that running processes
 * keep working. Answers what was made.
 */
export async function ensureSecrets(
  home: Home,
  host: Pick<HostConfiguration, 'hostId' | 'hostAddress'>,
): Promise<string[]> {
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
  let certificate = text('authority')
  let key = text('authorityKey')
  if (certificate === null || key === null) {
    const fresh = await makeAuthority()
    certificate = fresh.certificate
    key = fresh.key
    write('authorityKey', key)
    write('authority', certificate)
  }
  const authority = { certificate, key }
  const addresses = [...new Set([LOOPBACK, host.hostAddress, 'localhost', hostname()])]
  const good = (name: keyof typeof secretFiles, uri: string, served: string[] = []) =>
    identityIsGood(text(name) ?? '', { authority: certificate, uri, addresses: served })
  if (!good('agentIdentity', hostUri(host.hostId), addresses))
    write('agentIdentity', await issueHostIdentity(authority, { hostId: host.hostId, addresses }))
  const own: [keyof typeof secretFiles, AgentRight][] = [
    ['webIdentity', 'read'],
    ['controllerIdentity', 'task'],
  ]
  for (const [name, right] of own)
    if (!good(name, rightUri(right))) write(name, await issueClientIdentity(authority, right))
  // only once everything that replaces them is there
  for (const name of former) rmSync(join(home.secrets, name), { force: true })
  return made
}
