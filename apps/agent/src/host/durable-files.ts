import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fault } from '@floe/domain'
import type { EngineUser } from './engine-user'

/** Makes the entries of a directory durable. */
export function syncDirectory(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/**
 * Replaces a file so that after a crash at any moment it holds either the old or the new text. The temporary file is
 * created exclusively, so that nobody who may write to the directory can redirect it.
 */
export function replaceFile(
  path: string,
  text: string,
  options: { mode?: number; owner?: EngineUser } = {},
): void {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const fd = openSync(temporary, flags, options.mode ?? 0o600)
  try {
    try {
      // first of all: what a killed agent leaves in a data directory must not be unreadable to a backup of it
      if (options.owner && options.owner.uid !== null && options.owner.gid !== null)
        fchownSync(fd, options.owner.uid, options.owner.gid)
      const bytes = Buffer.from(text)
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  syncDirectory(dirname(path))
}

/** Removes what a killed agent left of its replacements of files in a directory; call it while none is under way. */
export function removeTemporary(directory: string): void {
  if (!existsSync(directory)) return
  for (const name of readdirSync(directory))
    if (/\.[0-9a-f]{12}\.tmp$/.test(name)) rmSync(join(directory, name), { force: true })
}

/** More than this no file holds that the agent reads whole: its owner cannot fill the agent's memory. */
const READ_MAX_BYTES = 16 * 1024 * 1024

/**
 * Opens a file that an engine's user may write to for reading; null when there is none. Neither a symbolic link nor a
 * pipe or a device planted under its name is opened: the first would lead elsewhere, the others would hold up the agent.
 * The caller closes it.
 */
export function openOwnedFile(path: string): number | null {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  throw fault('host.not_a_file', `"${path}" is not a regular file`, {
    hint: 'Something else was put in its place. Remove it.',
  })
}

/** Reads a file that an engine's user may write to, by the rules of openOwnedFile(); null when there is none. */
export function readOwnedFile(path: string): string | null {
  const fd = openOwnedFile(path)
  if (fd === null) return null
  try {
    if (fstatSync(fd).size > READ_MAX_BYTES) throw fault('host.file_too_large', `file "${path}" is too large`)
    return readFileSync(fd, 'utf8')
  } finally {
    closeSync(fd)
  }
}

/**
 * Makes a directory that the engine's user may pass but not change: what lies in it cannot be swapped for a link under a
 * root agent's hands. Without root it is the agent's own like everything else.
 */
export function makeOuterDirectory(path: string, owner: EngineUser): void {
  const separate = owner.uid !== null
  mkdirSync(path, { recursive: true, mode: separate ? 0o711 : 0o700 })
  if (!separate) return
  lchownSync(path, process.getuid?.() ?? 0, process.getgid?.() ?? 0)
  chmodSync(path, 0o711)
}

/**
 * Makes a directory of mode 0700 that belongs to the engine's user. Keeps one that is there. Its parent must be one that
 * the engine's user cannot change.
 */
export function makeOwnedDirectory(path: string, owner: EngineUser): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  if (owner.uid !== null && owner.gid !== null) lchownSync(path, owner.uid, owner.gid)
}

/** Makes a directory that others may pass through, when it is not there yet. */
export function makeSharedDirectory(path: string, owner: EngineUser): void {
  if (existsSync(path)) return
  mkdirSync(path, { recursive: true, mode: 0o755 })
  chmodSync(path, 0o755)
  if (owner.uid !== null && owner.gid !== null) lchownSync(path, owner.uid, owner.gid)
}
