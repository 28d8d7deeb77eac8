import { chmodSync, existsSync, lchownSync, lstatSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fault, type HostConfiguration, type Installation, programHome } from '@floe/domain'
import { type Home, makeDirectory } from './home'
import { findUser, groupId, isRoot, type OsUser, reachableBy } from './os-user'
import { packaged } from './package'

/** Unix socket paths end at 107 bytes; a directory of an instance (13) and `/.s.PGSQL.<port>` come after it. */
const SOCKET_DIRECTORY_BYTES_MAX = 78
const BUILD_BYTES_MIN = 3 * 1024 ** 3
/** Of a host that was made from packages and builds nothing. */
const STATE_BYTES_MIN = 512 * 1024 ** 2

/** The nearest directory above a path that exists. */
function existing(path: string): string {
  return existsSync(path) ? path : existing(dirname(path))
}

/** Refuses to begin where the file system has less than 3 GB free, or, with nothing to build, 0.5 GB. */
export function requireSpace(...directories: string[]): void {
  const builds = packaged() === null
  const least = builds ? BUILD_BYTES_MIN : STATE_BYTES_MIN
  for (const directory of directories) {
    const { bavail, bsize } = statfsSync(existing(directory))
    const free = bavail * bsize
    if (free < least)
      throw fault('installation.no_space', `not enough free space for "${directory}"`, {
        detail: `${(free / 1024 ** 3).toFixed(1)} GB are free; ${builds ? 'building the engine and the console' : 'the agent'} needs ${least / 1024 ** 3} GB.`,
        hint: 'Free some space, or set FLOE_HOME and FLOE_CACHE to another file system.',
      })
  }
}

/** Of all installations of a machine whose homes other users cannot reach. */
export const SHARED_DIRECTORY = '/var/lib/floe'

/** Where instances go: in FLOE_HOME when the engine's user can get there (a root user's home it cannot), else below /var/lib. */
export function chooseInstancesDirectory(home: Home, user: OsUser, installationId: string): string {
  if (user.switchTo === null || reachableBy(user, home.directory)) return join(home.directory, 'instances')
  return `${SHARED_DIRECTORY}/${installationId}`
}

/** A short directory for sockets: below FLOE_HOME if its path is short enough, else below /run or /tmp. */
export function chooseSocketDirectory(home: Home, user: OsUser, installationId: string): string {
  const short = installationId.slice(0, 8)
  if (user.switchTo !== null) return `/run/floe/${short}`
  const inside = join(home.run, 'sockets')
  return Buffer.byteLength(inside) <= SOCKET_DIRECTORY_BYTES_MAX ? inside : `/tmp/floe-${short}`
}

/** Where the homes of web and controller go: in FLOE_HOME when other users can get there, else below /var/lib. */
export function chooseConsoleDirectory(home: Home, user: OsUser, installationId: string): string {
  if (user.switchTo === null || reachableBy(user, home.directory)) return home.directory
  return `${SHARED_DIRECTORY}/${installationId}`
}

/**
 * Makes a directory of a user's in one of our own, where nobody can swap it. One that is there is given to that user; a
 * link or a file in its place is refused.
 */
function ownDirectory(path: string, mode: number, owner: { uid: number; gid: number } | null): void {
  try {
    makeDirectory(path, mode)
    if (!lstatSync(path).isDirectory()) throw new Error('Something else has this name.')
    if (owner !== null) lchownSync(path, owner.uid, owner.gid)
    // a change of owner clears the bits for the group
    chmodSync(path, mode)
  } catch (cause) {
    throw fault('installation.no_directory', `could not create "${path}"`, {
      detail: cause instanceof Error ? cause.message : String(cause),
      cause,
    })
  }
}

const self = () => (isRoot() ? { uid: 0, gid: 0 } : null)

/**
 * Makes the directories of instances and of sockets and checks that the engine's user can use them. /run is empty after a
 * boot. Both are the launcher's own: users of engines may pass them, but cannot swap what lies in them for a link.
 */
export function makeEngineDirectories(installation: HostConfiguration, user: OsUser): void {
  const { instancesDirectory, socketDirectory, enginePrefix } = installation
  // an agent that made it first once kept everybody else out
  if (dirname(instancesDirectory) === SHARED_DIRECTORY) ownDirectory(SHARED_DIRECTORY, 0o755, self())
  ownDirectory(instancesDirectory, user.switchTo === null ? 0o700 : 0o711, self())
  ownDirectory(socketDirectory, 0o755, self())
  for (const directory of [instancesDirectory, socketDirectory])
    if (!reachableBy(user, directory))
      throw fault('installation.unreachable', `user "${user.name}" cannot use "${directory}"`, {
        detail: 'A directory above it does not let that user through.',
        hint: 'Set FLOE_HOME to a directory that every user may pass.',
      })
  if (!reachableBy(user, join(enginePrefix, 'bin/postgres')))
    throw fault(
      'installation.engine_unreachable',
      `user "${user.name}" cannot run the engine in "${enginePrefix}"`,
      {
        detail: 'A directory above it does not let that user through.',
        hint: 'Set FLOE_CACHE to a directory that every user may pass.',
      },
    )
}

/**
 * Makes the directories of the console's own parts. The homes of web and controller are root's and hold a directory of
 * secrets each: the controller's is its own, and web's is the controller's too, who renews the certificate in it, while
 * web may read it and nothing else.
 */
export function makeConsoleDirectories(installation: Installation): void {
  const { users, consoleDirectory, controlDatabase, webSocket } = installation
  const owner = (name: string | undefined) => (name === undefined ? null : (findUser(name)?.switchTo ?? null))
  const [control, web, controller] = [users?.controlDatabase, users?.web, users?.controller].map(owner)
  const group = users === null ? null : groupId(users.group)
  if (users !== null && !(control && web && controller && group))
    throw fault('installation.no_user', 'the users of the console do not exist', {
      detail: `They are ${users.controlDatabase}, ${users.web} and ${users.controller}, and the group ${users.group}.`,
    })
  makeDirectory(consoleDirectory, 0o711)
  for (const name of ['web', 'controller'] as const)
    ownDirectory(programHome(installation, name), 0o755, self())
  ownDirectory(secretsOf(installation, 'controller'), 0o700, controller ?? null)
  // files created in it get its group, no matter who creates them
  ownDirectory(
    secretsOf(installation, 'web'),
    users === null ? 0o700 : 0o2750,
    controller && web ? { uid: controller.uid, gid: web.gid } : null,
  )
  ownDirectory(dirname(webSocket), 0o700, web ?? null)
  if (controlDatabase.url === null)
    ownDirectory(
      controlDatabase.socketDirectory,
      users === null ? 0o700 : 0o750,
      control && group ? { uid: control.uid, gid: group } : null,
    )
}

/** The secrets of web or controller. */
export const secretsOf = (
  installation: Pick<Installation, 'consoleDirectory'>,
  name: 'web' | 'controller',
): string => join(programHome(installation, name), 'secrets')
