import {
  chmodSync,
  closeSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readSync,
  type Stats,
  statfsSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fault } from '@floe/domain'
import { readDescriptor } from '@floe/host/regular-file'
import { isUnfinished } from '@floe/host/replace-file'
import type { EngineUser } from './engine-user'
import { isThere, listInTree, openBelow, removeInTree } from './tree'

/**
 * Removes what a killed agent left of its replacements of files in a directory of an owner's tree; call it while none is
 * under way.
 */
export function removeUnfinishedInTree(directory: string, owner: EngineUser): void {
  if (!isThere(directory)) return
  for (const name of listInTree(directory)) if (isUnfinished(name)) removeInTree(join(directory, name), owner)
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
    return readDescriptor(fd, path, READ_MAX_BYTES)
  } finally {
    closeSync(fd)
  }
}

/** Bytes of what openBelow() opened; fewer at its end. */
export function readOwnedBytes(fd: number, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  let have = 0
  while (have < length) {
    const got = readSync(fd, bytes, have, length - have, offset + have)
    if (got === 0) break
    have += got
  }
  return bytes.subarray(0, have)
}

export const closeOwnedFile = (fd: number): void => closeSync(fd)

/** What the file system of an instance's outer directory has left for others than root. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

const beginning = Buffer.alloc(4_096)

/** The first 4 kB of one as Latin-1 text, by the rules of openOwnedFile(); null when there is none. */
export function readSmallOwnedFile(path: string): string | null {
  const fd = openOwnedFile(path)
  if (fd === null) return null
  try {
    return beginning.toString('latin1', 0, readSync(fd, beginning, 0, beginning.length, 0))
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
