import { spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  rmdirSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { checkoutDirectory, writeWhole } from './home'
import type { OsUser } from './os-user'

/** More than any file holds that the command line reads from another user's directory. */
const BYTES_MAX = 1 << 20

/**
 * Reads a file in a directory that another user may change: no link is followed, a pipe or a device in its place is
 * refused instead of waited for, and no more is read than `bytesMax`.
 */
export function readOwned(file: string, bytesMax = BYTES_MAX): string {
  const fd = openSync(
    file,
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY,
  )
  try {
    if (!fstatSync(fd).isFile())
      throw fault('installation.not_a_file', `"${file}" is not a regular file`, {
        hint: 'Something else was put in its place. Remove it.',
      })
    const buffer = Buffer.allocUnsafe(bytesMax + 1)
    let length = 0
    for (;;) {
      const read = readSync(fd, buffer, length, buffer.length - length, null)
      if (read === 0) break
      length += read
      if (length > bytesMax)
        throw fault('installation.file_too_large', `"${file}" is larger than ${bytesMax} bytes`)
    }
    return buffer.toString('utf8', 0, length)
  } finally {
    closeSync(fd)
  }
}

/** The agent's door to trees of other users, which it is built with. */
export const treeProgram = (): string => join(checkoutDirectory(), 'apps/agent/dist/floe-tree')

/** Runs it; its error is thrown. */
export function changeTree(words: string[], input = ''): void {
  const { status, signal, stderr, error } = spawnSync(treeProgram(), words, {
    input,
    cwd: '/',
    env: {},
    encoding: 'utf8',
  })
  if (error) throw error
  if (status !== 0)
    throw new Error(
      stderr.trim().replace(/^floe-tree: /, '') || `${treeProgram()} ended with ${status ?? signal}`,
    )
}

/** Removes a directory of root's own that holds directories of other users: what is in each with its owner's file access. */
export function removeSockets(directory: string): void {
  if (!existsSync(directory)) return
  for (const name of readdirSync(directory)) {
    const path = join(directory, name)
    const found = lstatSync(path)
    if (!found.isDirectory()) rmSync(path)
    else {
      if (found.uid !== process.getuid?.())
        changeTree(['--as', `${found.uid}:${found.gid}`, 'remove', '--inside', path])
      rmdirSync(path)
    }
  }
  rmdirSync(directory)
}

/**
 * Replaces a file in a directory that another user may change, with that user's file access, so that a link planted there
 * leads nowhere that the user could not go alone.
 */
export function writeOwned(owner: OsUser, file: string, text: string, mode: number): void {
  const { uid, gid } = owner.switchTo ?? {}
  if (uid === undefined) writeWhole(file, text, mode)
  else changeTree(['--as', `${uid}:${gid}`, 'replace', '--mode', mode.toString(8), file], text)
}
