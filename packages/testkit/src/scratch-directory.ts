import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A private directory under the temporary one that the engine's user can pass through; short, for sockets. */
export function makeScratchDirectory(name = 'floe-test'): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), `${name}-`))
  chmodSync(path, 0o755)
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Gives a path to the engine's user, where there is another one. */
export function giveTo(path: string, user: { uid?: number; gid?: number }): void {
  if (user.uid !== undefined && user.gid !== undefined) chownSync(path, user.uid, user.gid)
}
