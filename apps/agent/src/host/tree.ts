import { spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
  realpathSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fault } from '@floe/domain'
import { notAFile } from '@floe/host/regular-file'
import type { EngineUser } from './engine-user'
import { runCommand } from './run-command'

/**
 * The door to trees that belong to an instance's user, who is not trusted: any superuser of the instance runs
 * programs as that user and can swap any name in there at any moment.
 *
 * - What changes such a tree is done by `floe-tree` with the file access of its owner, so a link planted there leads
 *   nowhere that the owner itself could not go.
 * - What is read is opened without following links, is a regular file, and is bounded in size.
 * - Directories *around* such trees are root's own: a name in them cannot be swapped, and root works there directly.
 *
 * No other file of the agent calls the file system inside an instance (tooling/boundaries/tree-door.mjs).
 */
const program = join(
  dirname(fileURLToPath(import.meta.url)),
  // bundled it lies beside; run from its sources, where the build put it
  import.meta.url.endsWith('/src/host/tree.ts') ? '../../dist/floe-tree' : 'floe-tree',
)

/** A change of one file takes a moment; a disk that hangs holds up the agent no longer than this. */
const CHANGE_MS = 30_000
const REMOVE_MS = 3_600_000

const as = (owner: EngineUser) =>
  owner.uid === null || owner.gid === null ? [] : ['--as', `${owner.uid}:${owner.gid}`]

/** An error with the system's own code, as Node's have: a full disk is recognised by it. */
function failed(stderr: string, how: string): Error {
  const m = /^floe-tree: ([A-Z0-9]+): (.*)$/m.exec(stderr)
  if (!m) return new Error(`floe-tree ${how}: ${stderr.trim() || 'no reason given'}`)
  return Object.assign(new Error(m[2]), { code: m[1] })
}

function change(owner: EngineUser, words: readonly string[], input: string | Uint8Array = ''): void {
  const r = spawnSync(program, [...as(owner), ...words], {
    input,
    timeout: CHANGE_MS,
    killSignal: 'SIGKILL',
    env: {},
    cwd: '/',
    encoding: 'utf8',
    maxBuffer: 1 << 20,
  })
  // one that refuses does not read all of its input; why, it says
  const refused = r.stderr && (r.error as NodeJS.ErrnoException | undefined)?.code === 'EPIPE'
  if (r.error && !refused) throw r.error
  if (r.status !== 0) throw failed(r.stderr, `ended with ${r.status ?? r.signal}`)
}

/** Replaces a file inside the owner's tree; after a crash it holds the old or the new text. Throws with the system's code. */
export function replaceInTree(path: string, text: string, owner: EngineUser, mode = 0o600): void {
  change(owner, ['replace', '--mode', mode.toString(8), path], text)
}

/**
 * Writes files directly into a directory of the owner's that is being made, all at once and not synced: who makes it syncs it
 * before it counts. Throws with the system's code.
 */
export function fillDirectory(path: string, texts: ReadonlyMap<string, string>, owner: EngineUser): void {
  const pieces = [...texts].flat()
  if (pieces.some((piece) => piece.includes('\0'))) throw new Error('a file would hold a NUL')
  change(owner, ['fill', path], pieces.map((piece) => `${piece}\0`).join(''))
}

/**
 * Puts bytes into a file below a directory of the owner's, from an offset on and durably; the file is made where it is missing.
 * No part of `relative` may be a link. Throws with the system's code.
 */
export function writeInTree(
  root: string,
  relative: string,
  offset: number,
  bytes: Uint8Array,
  owner: EngineUser,
): void {
  change(owner, ['write', '--at', String(offset), root, relative], bytes)
}

/** Makes a directory inside the owner's tree; one that is there is fine, anything else in its place is not. */
export function makeDirectoryInTree(path: string, owner: EngineUser): void {
  change(owner, ['mkdir', path])
}

/** Removes a file, or a directory with all that is in it, inside the owner's tree; missing is fine. */
export async function removeBelow(path: string, owner: EngineUser): Promise<void> {
  const r = await runCommand(program, [...as(owner), 'remove', path], { timeoutMs: REMOVE_MS })
  if (r.status !== 0) throw failed(r.stderr, `ended with ${r.status ?? r.signal}`)
}

/** Removes a file inside the owner's tree, durably; one that is missing is fine. */
export function removeInTree(path: string, owner: EngineUser): void {
  change(owner, ['remove', path])
}

/**
 * Removes a tree of the owner's that lies in a directory of root's own: what is in it with the owner's file access, then
 * its name. Missing is fine.
 */
export async function removeTree(path: string, owner: EngineUser): Promise<void> {
  if (!isThere(path)) return
  // an agent killed between making a directory and giving it away left an empty one that its owner may not open
  if (removedEmpty(path)) return
  const r = await runCommand(program, [...as(owner), 'remove', '--inside', path], { timeoutMs: REMOVE_MS })
  if (r.status !== 0) throw failed(r.stderr, `ended with ${r.status ?? r.signal}`)
  rmdirSync(path)
}

function removedEmpty(path: string): boolean {
  try {
    rmdirSync(path)
    return true
  } catch {
    return false
  }
}

/**
 * Removes a directory of root's own that holds trees of the owner's beside files of root's: an instance's. Missing is fine.
 */
export async function removeOuterDirectory(path: string, owner: EngineUser): Promise<void> {
  if (!isThere(path)) return
  for (const name of readdirSync(path)) {
    const entry = join(path, name)
    if (lstatSync(entry, { throwIfNoEntry: false })?.isDirectory()) await removeTree(entry, owner)
    else unlinkSync(entry)
  }
  rmdirSync(path)
}

/** Shares the blocks of files between two trees, each opened with its owner's file access. Answers the paths that are gone by now. */
export async function cloneFiles(
  paths: readonly string[],
  source: { directory: string; owner: EngineUser },
  target: { directory: string; owner: EngineUser },
  signal?: AbortSignal,
): Promise<string[]> {
  const from = `${source.owner.uid ?? process.getuid?.()}:${source.owner.gid ?? process.getgid?.()}`
  const r = await runCommand(
    program,
    [...as(target.owner), 'clone', '--from', from, source.directory, target.directory],
    { input: paths.join('\0'), timeoutMs: REMOVE_MS, signal },
  )
  signal?.throwIfAborted()
  if (r.status !== 0) throw failed(r.stderr, `ended with ${r.status ?? r.signal}`)
  return r.stdout.split('\0').filter(Boolean)
}

/**
 * Gives a stopped instance's tree from one user to another, by descriptor. Nothing is changed unless all of it can be;
 * what does not fit is named in the fault. Safe to run again after a kill.
 */
export async function handOverTree(
  path: string,
  from: number,
  to: { uid: number; gid: number },
  o: { checkOnly?: boolean; signal?: AbortSignal; onProgress?: (done: number, all: number) => void } = {},
): Promise<void> {
  const words = [
    ...['hand-over', '--from', String(from), '--to', `${to.uid}:${to.gid}`],
    ...(o.checkOnly ? ['--check'] : []),
    // what lies above is root's, and may be a link to another disk
    join(realpathSync(dirname(path)), basename(path)),
  ]
  const r = await runCommand(program, words, {
    timeoutMs: REMOVE_MS,
    signal: o.signal,
    onOutput: (text) => {
      const seen = [...text.matchAll(/^done (\d+) of (\d+)$/gm)].at(-1)
      if (seen) o.onProgress?.(Number(seen[1]), Number(seen[2]))
    },
  })
  o.signal?.throwIfAborted()
  if (r.status === 0) return
  throw fault('instance.not_separated', 'the files of the instance cannot be given to a user of its own', {
    detail: failed(r.stderr, `ended with ${r.status ?? r.signal}`).message,
    hint: 'Move or remove what is named, then try again.',
  })
}

/** Gives a file or a directory of root's own outer directory to a user; a link's target is not touched. */
export function giveEntry(path: string, owner: EngineUser): void {
  if (owner.uid !== null && owner.gid !== null && isThere(path)) lchownSync(path, owner.uid, owner.gid)
}

/** Whether a name is there, without following it. */
export function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/** Names in a directory of an owner's, at most `max`: more are somebody's doing, and are refused before they fill memory. */
export function listInTree(path: string, max = 10_000): string[] {
  const directory = opendirSync(path)
  try {
    const names: string[] = []
    for (let entry = directory.readSync(); entry; entry = directory.readSync()) {
      if (names.length >= max)
        throw fault('host.too_many_files', `directory "${path}" holds more than ${max} files`)
      names.push(entry.name)
    }
    return names
  } finally {
    directory.closeSync()
  }
}

const reading = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Opens what lies below a directory whose own name cannot be swapped, following no link on the way. */
function descend(root: string, relative: string, what: 'file' | 'directory'): number {
  const parts = relative.split('/')
  let at = openSync(root, reading | constants.O_DIRECTORY)
  try {
    for (const [i, part] of parts.entries()) {
      const directory = i < parts.length - 1 || what === 'directory'
      const next = openSync(
        `/proc/self/fd/${at}/${part}`,
        directory ? reading | constants.O_DIRECTORY : reading,
      )
      closeSync(at)
      at = next
    }
    return at
  } catch (error) {
    closeSync(at)
    throw error
  }
}

/**
 * Opens a regular file below a directory whose own name cannot be swapped, following no link on the way; null when it is
 * missing. The caller closes it.
 */
export function openBelow(root: string, relative: string): number | null {
  let fd: number
  try {
    fd = descend(root, relative, 'file')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    // a link, or a socket
    throw code === 'ELOOP' || code === 'ENXIO' ? notAFile(join(root, relative)) : error
  }
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  throw notAFile(join(root, relative))
}

/** Names in a directory below another, by the rules of openBelow() and listInTree(). */
export function listBelow(root: string, relative: string, max = 100_000): string[] {
  const fd = descend(root, relative, 'directory')
  try {
    return listInTree(`/proc/self/fd/${fd}`, max)
  } finally {
    closeSync(fd)
  }
}
