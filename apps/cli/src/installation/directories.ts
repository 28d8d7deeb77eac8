import { chmodSync, existsSync, lchownSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fault, type HostConfiguration } from '@floe/domain'
import { type EngineUser, reachableBy } from './engine-user'
import { type Home, makeDirectory } from './home'

/** Unix socket paths end at 107 bytes; PostgreSQL adds `/.s.PGSQL.<port>.lock`. */
const SOCKET_DIRECTORY_BYTES_MAX = 80
const FREE_BYTES_MIN = 3 * 1024 ** 3

/** The nearest directory above a path that exists. */
function existing(path: string): string {
  return existsSync(path) ? path : existing(dirname(path))
}

/** Refuses to begin where the file system has less than 3 GB free. */
export function requireSpace(...directories: string[]): void {
  for (const directory of directories) {
    const { bavail, bsize } = statfsSync(existing(directory))
    const free = bavail * bsize
    if (free < FREE_BYTES_MIN)
      throw fault('installation.no_space', `not enough free space for "${directory}"`, {
        detail: `${(free / 1024 ** 3).toFixed(1)} GB are free; building the engine and the console needs ${FREE_BYTES_MIN / 1024 ** 3} GB.`,
        hint: 'Free some space, or set FLOE_HOME and FLOE_CACHE to another file system.',
      })
  }
}

/** Where instances go: in FLOE_HOME when the engine's user can get there (a root user's home it cannot), else below /var/lib. */
export function chooseInstancesDirectory(home: Home, user: EngineUser, installationId: string): string {
  if (user.switchTo === null || reachableBy(user, home.directory)) return join(home.directory, 'instances')
  return `/var/lib/floe/${installationId}`
}

/** A short directory for sockets: below FLOE_HOME if its path is short enough, else below /run or /tmp. */
export function chooseSocketDirectory(home: Home, user: EngineUser, installationId: string): string {
  const short = installationId.slice(0, 8)
  if (user.switchTo !== null) return `/run/floe/${short}`
  const inside = join(home.run, 'sockets')
  return Buffer.byteLength(inside) <= SOCKET_DIRECTORY_BYTES_MAX ? inside : `/tmp/floe-${short}`
}

/**
 * Makes both directories and checks that the engine's user can use them. /run is empty after a boot. A root launcher keeps
 * the directory of instances its own: the engine's user may pass it, but cannot swap what lies in it for a link.
 */
export function makeEngineDirectories(installation: HostConfiguration, user: EngineUser): void {
  const { instancesDirectory, socketDirectory, enginePrefix } = installation
  for (const [directory, mode] of [
    [instancesDirectory, user.switchTo === null ? 0o700 : 0o711],
    [socketDirectory, 0o755],
  ] as const) {
    const owner =
      directory === socketDirectory
        ? user.switchTo
        : { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
    try {
      makeDirectory(directory, mode)
      if (user.switchTo !== null && owner !== null) lchownSync(directory, owner.uid, owner.gid)
      chmodSync(directory, mode)
    } catch (cause) {
      throw fault('installation.no_directory', `could not create "${directory}"`, {
        detail: cause instanceof Error ? cause.message : String(cause),
        cause,
      })
    }
    if (!reachableBy(user, directory, directory === socketDirectory ? '-w' : '-x'))
      throw fault('installation.unreachable', `user "${user.name}" cannot use "${directory}"`, {
        detail: 'A directory above it does not let that user through.',
        hint: 'Set FLOE_HOME to a directory that every user may pass.',
      })
  }
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
