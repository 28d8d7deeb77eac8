import { randomBytes } from 'node:crypto'
import { chmodSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { identityIsGood, issueClientIdentity, issueHostIdentity, makeAuthority } from '@floe/authority'
import {
  type AgentRight,
  type HostConfiguration,
  hostUri,
  type Installation,
  LOOPBACK,
  rightUri,
  secretFiles,
} from '@floe/domain'
import { readRegularFile } from '@floe/host/regular-file'
import { replaceFile } from '@floe/host/replace-file'
import { secretsOf } from './directories'
import type { Home } from './home'
import { findUser, type OsUser, ownUser } from './os-user'
import { writeOwned } from './own-files'

type SecretName = keyof typeof secretFiles
type Keeper = 'launcher' | 'web' | 'controller'

/** Who keeps each secret, the one that it is made for first. The launcher's are FLOE_HOME's own, for the agent and itself. */
const keepers = {
  authority: ['launcher', 'web', 'controller'],
  authorityKey: ['controller'],
  agentIdentity: ['launcher'],
  webIdentity: ['web'],
  controllerIdentity: ['controller'],
  authSecret: ['launcher', 'web', 'controller'],
  cliToken: ['launcher'],
  // of web's and controller's roles in a control database that Floe does not run; the owner's is given, not made
  controlWebPassword: ['launcher', 'web'],
  controlControllerPassword: ['launcher', 'controller'],
} as const satisfies Partial<Record<SecretName, readonly [Keeper, ...Keeper[]]>>
type Kept = keyof typeof keepers

const random = ['authSecret', 'cliToken', 'controlWebPassword', 'controlControllerPassword'] as const
/** Those that the kernel's word replaces where Floe runs the control database. */
const ofExternal: readonly Kept[] = ['controlWebPassword', 'controlControllerPassword']

/** What was replaced: keys that console and agent shared, a key in a file of its own, a password that a socket asks no more. */
const former = ['agent-read.key', 'agent-task.key', 'agent.key', 'control-password']

/** Where the secrets of the console's parts lie. */
const directoriesOf = (home: Home, host: Pick<Installation, 'consoleDirectory'>): Record<Keeper, string> => ({
  launcher: home.secrets,
  web: secretsOf(host, 'web'),
  controller: secretsOf(host, 'controller'),
})

/** All secrets of an installation with a control database of its own, as their keepers have them. */
export function readSecrets(home: Home, installation: Installation): Map<Kept, string> {
  const directories = directoriesOf(home, installation)
  const names = (Object.keys(keepers) as Kept[]).filter((name) => !ofExternal.includes(name))
  return new Map(
    names.map((name) => [name, readRegularFile(join(directories[keepers[name][0]], secretFiles[name]))]),
  )
}

/** Removes all secrets, which others are about to replace. */
export function forgetSecrets(home: Home, host: Pick<Installation, 'consoleDirectory'>): void {
  for (const directory of Object.values(directoriesOf(home, host)))
    for (const name of Object.values(secretFiles)) rmSync(join(directory, name), { force: true })
}

/**
 * Makes the secrets that are missing, and new certificates of this machine's agent, web and controller where they are due
 * for renewal, or say something else than they should; each is put where its process finds it and no other one does. What
 * is there and good stays as it is, so that running processes keep working. Answers what was made.
 */
export async function ensureSecrets(
  home: Home,
  host: Pick<HostConfiguration, 'hostId' | 'hostAddress'> &
    Pick<Installation, 'consoleDirectory' | 'users'> & { controlDatabase: { url: string | null } },
): Promise<string[]> {
  const made: string[] = []
  const wantedHere = (name: Kept) => host.controlDatabase.url !== null || !ofExternal.includes(name)
  const controller = (host.users && findUser(host.users.controller)) ?? ownUser()
  const places: Record<Keeper, { directory: string; owner: OsUser; mode: number }> = {
    launcher: { directory: home.secrets, owner: ownUser(), mode: 0o600 },
    // by its group web reads what it cannot change
    web: { directory: secretsOf(host, 'web'), owner: controller, mode: host.users === null ? 0o600 : 0o640 },
    controller: { directory: secretsOf(host, 'controller'), owner: controller, mode: 0o600 },
  }
  chmodSync(home.secrets, 0o700)
  const web = host.users && findUser(host.users.web)?.switchTo
  const put = (keeper: Keeper, name: Kept, text: string) => {
    const { directory, owner, mode } = places[keeper]
    const file = join(directory, secretFiles[name])
    // the directory is the controller's, who could read what is its own and is not to be web in the control database
    if (name === 'controlWebPassword' && keeper === 'web' && web)
      replaceFile(file, text, { mode: 0o640, giveTo: { uid: 0, gid: web.gid } })
    else writeOwned(owner, file, text, mode)
  }
  const inFile = (file: string) => {
    try {
      return readRegularFile(file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }
  const kept = (keeper: Keeper, name: Kept) => inFile(join(places[keeper].directory, secretFiles[name]))
  /** As its first keeper has it; of an installation of before all were the launcher's. */
  const text = (name: Kept) => kept(keepers[name][0], name) ?? kept('launcher', name)
  const write = (name: Kept, value: string) => {
    put(keepers[name][0], name, value)
    made.push(secretFiles[name])
  }
  for (const name of random)
    if (wantedHere(name) && text(name) === null) write(name, `${randomBytes(32).toString('base64url')}\n`)

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
  const good = (name: Kept, uri: string, served: string[] = []) =>
    identityIsGood(text(name) ?? '', { authority: certificate, uri, addresses: served })
  if (!good('agentIdentity', hostUri(host.hostId), addresses))
    write('agentIdentity', await issueHostIdentity(authority, { hostId: host.hostId, addresses }))
  const own: [Kept, AgentRight][] = [
    ['webIdentity', 'read'],
    ['controllerIdentity', 'task'],
  ]
  for (const [name, right] of own)
    if (!good(name, rightUri(right))) write(name, await issueClientIdentity(authority, right))

  for (const name of (Object.keys(keepers) as Kept[]).filter(wantedHere)) {
    const wanted = text(name) as string
    const all: readonly Keeper[] = keepers[name]
    for (const keeper of all) if (kept(keeper, name) !== wanted) put(keeper, name, wanted)
    // moved, not copied: once it is where it belongs
    if (!all.includes('launcher')) rmSync(join(home.secrets, secretFiles[name]), { force: true })
  }
  // only once everything that replaces them is there
  for (const name of former) rmSync(join(home.secrets, name), { force: true })
  return made
}
