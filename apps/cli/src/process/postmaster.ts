import { lstatSync } from 'node:fs'
import { identify, isAlive, type ProcessIdentity, readProcess, waitUntilGone } from '@floe/host/process'
import {
  fileNumber,
  listPids,
  programFileOf,
  programOf,
  userOf,
  workingDirectoryNumber,
} from '@floe/host/process-facts'
import { runProgram } from '../run-program'

/** A running server, and who it runs as. */
export type Postmaster = ProcessIdentity & { uid: number }

/** `nogroup`: a signal needs none. */
const NO_GROUP = 65_534

/**
 * The servers that run in data directories, by directory. The kernel is asked and no file of theirs: a server works in its
 * data directory, as the owner of that directory, and anyone who is superuser of an instance may write into its
 * postmaster.pid whatever he likes, or put a pipe there.
 */
export function findPostmasters(directories: readonly string[]): Map<string, Postmaster> {
  const wanted = new Map<string, { directory: string; uid: number }>()
  for (const directory of directories) {
    const found = lstatSync(directory, { throwIfNoEntry: false })
    if (found?.isDirectory()) wanted.set(fileNumber(found), { directory, uid: found.uid })
  }
  const working = new Map<string, number[]>()
  if (wanted.size > 0)
    for (const pid of listPids()) {
      const at = wanted.get(workingDirectoryNumber(pid) ?? '')
      if (at === undefined || userOf(pid) !== at.uid || programOf(pid) !== 'postgres') continue
      working.set(at.directory, [...(working.get(at.directory) ?? []), pid])
    }
  const running = new Map<string, Postmaster>()
  for (const { directory, uid } of wanted.values()) {
    const pids = working.get(directory) ?? []
    // the others are its children
    const first = pids
      .filter((pid) => !pids.includes(readProcess(pid)?.parent ?? 0))
      .flatMap((pid) => identify(pid) ?? [])
      .sort((a, b) => a.startTicks - b.startTicks || a.pid - b.pid)[0]
    if (first !== undefined) running.set(directory, { ...first, uid })
  }
  return running
}

/** The server that runs in a data directory; null when none does. */
export const findPostmaster = (directory: string): Postmaster | null =>
  findPostmasters([directory]).get(directory) ?? null

/** The prefix of the engine that a server was started from, as the kernel says it; null when that is not known. */
export const prefixOf = (postmaster: Postmaster): string | null =>
  /^(.*)\/bin\/postgres$/.exec(programFileOf(postmaster.pid) ?? '')?.[1] ?? null

/**
 * Stops a server (fast), as pg_ctl does, and waits until it is gone. The signal is sent as the server's own user, who can
 * reach no process but its own. False when it still runs after the deadline.
 */
export async function stopPostmaster(postmaster: Postmaster, deadlineMs: number): Promise<boolean> {
  if (!isAlive(postmaster)) return true
  const own = process.getuid?.() === postmaster.uid
  await runProgram('/bin/sh', ['-c', 'kill -INT "$1"', 'sh', String(postmaster.pid)], {
    ...(own ? {} : { uid: postmaster.uid, gid: NO_GROUP }),
    cwd: '/',
  })
  return waitUntilGone(postmaster, deadlineMs)
}
