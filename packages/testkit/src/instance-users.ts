import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const CLAIMS = '/var/lib/floe/users'

/** Removes the users of the operating system that an agent made for the instances of a throw-away home. */
export function removeUsersOf(home: string): void {
  if (process.getuid?.() !== 0 || !existsSync(CLAIMS)) return
  for (const file of readdirSync(CLAIMS)) {
    if (!file.endsWith('.json')) continue
    const path = join(CLAIMS, file)
    const claim = readClaim(path)
    if (claim?.home !== home) continue
    try {
      execFileSync('flock', ['/var/lib/floe/users.lock', '/usr/sbin/userdel', claim.name], {
        stdio: 'ignore',
      })
    } catch {
      // there is none any more
    }
    rmSync(path, { force: true })
  }
}

function readClaim(path: string): { home: string; name: string } | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}
