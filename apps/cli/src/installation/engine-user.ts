import { spawnSync } from 'node:child_process'
import { userInfo } from 'node:os'
import { fault } from '@floe/domain'

/** Who engines run as. `uid` and `gid` are only set where a process of ours has to change to them. */
export type EngineUser = { name: string; switchTo: { uid: number; gid: number } | null }

const ENGINE_USER = 'floe'

function numberOf(flag: '-u' | '-g', name: string): number | null {
  const { status, stdout } = spawnSync('id', [flag, name], { encoding: 'utf8' })
  return status === 0 ? Number(stdout.trim()) : null
}

/** The engine's user as it is, without making it: null when it would have to be made. */
export function findEngineUser(): EngineUser | null {
  if (process.getuid?.() !== 0) return { name: userInfo().username, switchTo: null }
  const uid = numberOf('-u', ENGINE_USER)
  const gid = numberOf('-g', ENGINE_USER)
  return uid === null || gid === null ? null : { name: ENGINE_USER, switchTo: { uid, gid } }
}

/** As root: the system user `floe`, made when missing, because PostgreSQL does not run as root. Else the user itself. */
export function ensureEngineUser(): EngineUser {
  const found = findEngineUser()
  if (found !== null) return found
  const { status, stderr, error } = spawnSync(
    'useradd',
    [
      '--system',
      '--user-group',
      '--no-create-home',
      '--home-dir',
      '/nonexistent',
      '--shell',
      '/usr/sbin/nologin',
      ENGINE_USER,
    ],
    { encoding: 'utf8' },
  )
  const made = findEngineUser()
  if (made === null)
    throw fault('installation.no_engine_user', `could not create the user "${ENGINE_USER}"`, {
      detail: error?.message ?? (stderr.trim() || `useradd ended with status ${status}.`),
      hint: `Create it yourself: useradd --system --user-group ${ENGINE_USER}`,
    })
  return made
}

/** True when the user may go through and write the directory, asked by trying it as that user. */
export function reachableBy(user: EngineUser, directory: string, access: '-w' | '-x' = '-x'): boolean {
  const { status } = spawnSync('test', [access, directory], { ...user.switchTo, cwd: '/' })
  return status === 0
}
