import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

/** Makes the entries of a directory durable. */
export function syncDirectory(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

export type ReplaceOptions = {
  /** Of a new file, less what the umask takes; `kept`: exactly that of the file which is replaced. 0600 unless it is said. */
  mode?: number | 'kept'
  /** Whom the file is given to; where a number is null, to nobody. */
  giveTo?: { uid: number | null; gid: number | null } | null
}

/**
 * Replaces a file, or makes it, so that a reader, or a crash at any moment, sees either all of the old text or all of the
 * new one. The new file is created exclusively under a name that nobody can guess, so that who may write to the directory
 * cannot redirect it, and takes the place of a link instead of following it. What lies above it is believed: in a tree of
 * an instance's user it is for the agent's door (apps/agent/src/host/tree.ts) to act.
 */
export function replaceFile(path: string, text: string, options: ReplaceOptions = {}): void {
  const temporary = writeBeside(path, text, options)
  try {
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  syncDirectory(dirname(path))
}

/**
 * Makes a file that must not be there, and answers whether it did; what is there, be it a link, stays as it is. It has all
 * of its text from its first moment on, also after a crash, and of several who make it at once one does.
 */
export function createFile(path: string, text: string): boolean {
  const temporary = writeBeside(path, text, {})
  try {
    linkSync(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(temporary, { force: true })
  }
  syncDirectory(dirname(path))
  return true
}

/** Writes a file durably that is to have this path, and answers the path that it has as yet. */
function writeBeside(path: string, text: string, { mode = 0o600, giveTo }: ReplaceOptions): string {
  const kept = mode === 'kept' ? statSync(path).mode & 0o777 : null
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const fd = openSync(temporary, flags, mode === 'kept' ? 0o600 : mode)
  try {
    try {
      if (giveTo && giveTo.uid !== null && giveTo.gid !== null) fchownSync(fd, giveTo.uid, giveTo.gid)
      if (kept !== null) fchmodSync(fd, kept)
      const bytes = Buffer.from(text)
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  return temporary
}

/** Removes a file durably, and not what it links to; one that is missing is fine. */
export function removeFile(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return
  rmSync(path)
  syncDirectory(dirname(path))
}

/** True for the name of a replacement that a killed process may have left. */
export const isUnfinished = (name: string): boolean => /\.[0-9a-f]{12}\.tmp$/.test(name)

/** Removes what killed processes left of replacements in a directory; call it while none is under way. Missing is fine. */
export function removeUnfinished(directory: string): void {
  if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) return
  for (const name of readdirSync(directory))
    if (isUnfinished(name)) rmSync(join(directory, name), { force: true })
}
