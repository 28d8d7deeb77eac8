import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Where agents note which user they gave to which instance of which home. */
const CLAIMS = '/var/lib/floe/users'

const read = (file: string): Record<string, unknown> => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  } catch {
    return {}
  }
}

const claims = () => {
  try {
    return readdirSync(CLAIMS).map((name) => join(CLAIMS, name))
  } catch {
    return []
  }
}

/** Removes the OS users that the product made for these homes, and the directories of their sockets. */
export function removeUsersOf(homes: readonly string[]): void {
  for (const file of claims()) {
    const { home, name } = read(file)
    if (!homes.includes(String(home)) || !/^floe-[0-9a-f]{12}$/.test(String(name))) continue
    spawnSync('userdel', [String(name)])
    rmSync(file, { force: true })
  }
  for (const home of homes) {
    const { users, socketDirectory } = read(join(home, 'config.json'))
    if (/^\/run\/floe\/[0-9a-f]{8}$/.test(String(socketDirectory)))
      rmSync(String(socketDirectory), { recursive: true, force: true })
    const { group, ...names } = (users ?? {}) as Record<string, string>
    for (const name of Object.values(names)) spawnSync('userdel', [name])
    if (group) spawnSync('groupdel', [group])
  }
}
