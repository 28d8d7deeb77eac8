import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '@floe/host/replace-file'
import { checkoutDirectory } from './home'
import type { OsUser } from './os-user'

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
  if (uid === undefined) replaceFile(file, text, { mode })
  else changeTree(['--as', `${uid}:${gid}`, 'replace', '--mode', mode.toString(8), file], text)
}
