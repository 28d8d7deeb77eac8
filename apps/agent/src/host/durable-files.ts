import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  fsyncSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fault } from '@floe/domain'
import type { EngineUser } from './engine-user'
import { isThere, listInTree, openBelow, removeInTree, replaceInTree } from './tree'

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
 * Replaces a file so that after a crash at any moment it holds either the old or the new text. With an `owner` it lies in
 * a tree of that user's, and is written with the file access of that user only; without, it is the agent's own.
 */
export function replaceFile(
  path: string,
  text: string,
  options: { mode?: number; owner?: EngineUser } = {},
): void {
  if (options.owner) replaceInTree(path, text, options.owner, options.mode)
  else writeWhole(path, text, options.mode ?? 0o600, null)
}

/**
 * The same for a file that a user has to be able to read, in a directory that only the agent's user can change: nobody
 * can put a link in its place.
 */
export function replaceOuterFile(path: string, text: string, owner: EngineUser): void {
  writeWhole(path, text, 0o600, owner)
}

function writeWhole(path: string, text: string, mode: number, owner: EngineUser | null): void {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const fd = openSync(temporary, flags, mode)
  try {
    try {
      if (owner && owner.uid !== null && owner.gid !== null) fchownSync(fd, owner.uid, owner.gid)
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

/** Removes a file of the agent's own, durably; one that is missing is fine. */
export function removeFile(path: string): void {
  if (!isThere(path)) return
  rmSync(path)
  syncDirectory(dirname(path))
}

/**
 * Removes what a killed agent left of its replacements of files in a directory, of an owner's tree or of its own; call it
 * while none is under way.
 */
export function removeTemporary(directory: string, owner?: EngineUser): void {
  if (!isThere(directory)) return
  for (const name of listInTree(directory)) {
    if (!/\.[0-9a-f]{12}\.tmp$/.test(name)) continue
    if (owner) removeInTree(join(directory, name), owner)
    else rmSync(join(directory, name), { force: true })
  }
}

/** More than this no file holds that the agent reads whole: its owner cannot fill the agent's memory. */
const READ_MAX_BYTES = 16 * 1024 * 1024

/**
 * Opens a file that an engine's user may write to for reading; null when there is none. Neither a symbolic link nor a
 * pipe or a device planted under its name is opened: the first would lead elsewhere, the others would hold up the agent.
 * The caller closes it.
 */
export function openOwnedFile(path: string): number | null {
  return isThere(dirname(path)) ? openBelow(dirname(path), basename(path)) : null
}

/** What is known of a file by the rules of openOwnedFile(); null when there is none. */
export function statOwnedFile(path: string): Stats | null {
  const fd = openOwnedFile(path)
  if (fd === null) return null
  try {
    return fstatSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Reads a file that an engine's user may write to, by the rules of openOwnedFile(); null when there is none. */
export function readOwnedFile(path: string): string | null {
  return readWhole(openOwnedFile(path), path)
}

/** The same for a file deeper below a directory whose own name cannot be swapped. */
export function readOwnedFileBelow(root: string, relative: string): string | null {
  return readWhole(openBelow(root, relative), join(root, relative))
}

function readWhole(fd: number | null, path: string): string | null {
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

/** Makes a directory of the agent's own that everybody may pass through and read, and only it can change. */
export function makeSharedDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o755 })
  const stat = lstatSync(path)
  if (!stat.isDirectory()) throw fault('host.not_a_directory', `"${path}" is not a directory`)
  // an earlier version gave it to the engines' user
  if (stat.uid !== process.getuid?.()) lchownSync(path, process.getuid?.() ?? 0, process.getgid?.() ?? 0)
  if ((stat.mode & 0o777) !== 0o755) chmodSync(path, 0o755)
}
