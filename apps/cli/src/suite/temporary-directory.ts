import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A directory of a run's own for all that its programs make with `tmpdir()`. ext4 is told to spread what is made in it over
 * the disk, as it does with homes: tests remove thousands of files, and to make one among those that were removed within the
 * last minutes it looks at each of them, which costs more than the file.
 */
export function makeTemporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'floe-'))
  // users of instances pass through it, as through the one that it lies in
  chmodSync(path, 0o1777)
  // other file systems know no such thing
  spawnSync('chattr', ['+T', path])
  return path
}

/**
 * Removes it; answers why not all of it could be: a file system is still mounted in it, whose files may be anybody's, or
 * something that a test left running writes there. Neither takes the results of a run away.
 */
export function removeTemporaryDirectory(path: string, mounts = readMounts()): string | null {
  if (mounts.some((place) => place.startsWith(`${path}/`))) return 'a file system is mounted in it'
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 })
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Where file systems are mounted, as this process sees them. */
const readMounts = (): string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
