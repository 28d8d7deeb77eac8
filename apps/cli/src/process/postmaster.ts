import { lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { runProgram } from '../run-program'
import { identify, isAlive, type ProcessIdentity, waitUntilGone } from './identity'

/** A running server, and who it runs as. */
export type Postmaster = ProcessIdentity & { uid: number }

/** The user that a process runs as; null when it is gone. */
export function userOf(pid: number): number | null {
  try {
    // the owner of /proc/PID is root's for a process that hides its memory
    const uid = /^Uid:\t(\d+)\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[2]
    return uid === undefined ? null : Number(uid)
  } catch {
    return null
  }
}

function parentOf(pid: number): number | null {
  try {
    const parent = /^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return parent === undefined ? null : Number(parent)
  } catch {
    return null
  }
}

/** `nogroup`: a signal needs none. */
const NO_GROUP = 65_534

const place = ({ dev, ino }: { dev: number; ino: number }) => `${dev}:${ino}`

/**
 * The servers that run in data directories, by directory. The kernel is asked and no file of theirs: a server works in its
 * data directory, as the owner of that directory, and whoever is superuser of an instance may write into its
 * postmaster.pid whatever he likes, or put a pipe there.
 */
export function findPostmasters(directories: readonly string[]): Map<string, Postmaster> {
  const wanted = new Map<string, { directory: string; uid: number }>()
  for (const directory of directories) {
    const found = lstatSync(directory, { throwIfNoEntry: false })
    if (found?.isDirectory()) wanted.set(place(found), { directory, uid: found.uid })
  }
  const working = new Map<string, number[]>()
  if (wanted.size > 0)
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue
      try {
        const at = wanted.get(place(statSync(`/proc/${name}/cwd`)))
        if (at === undefined || userOf(Number(name)) !== at.uid) continue
        if (!/\/postgres(?: \(deleted\))?$/.test(readlinkSync(`/proc/${name}/exe`))) continue
        working.set(at.directory, [...(working.get(at.directory) ?? []), Number(name)])
      } catch {
        // gone, or not ours to look at
      }
    }
  const running = new Map<string, Postmaster>()
  for (const { directory, uid } of wanted.values()) {
    const pids = working.get(directory) ?? []
    // the others are its children
    const first = pids
      .filter((pid) => !pids.includes(parentOf(pid) ?? 0))
      .flatMap((pid) => identify(pid) ?? [])
      .sort((a, b) => a.startTicks - b.startTicks || a.pid - b.pid)[0]
    if (first !== undefined) running.set(directory, { ...first, uid })
  }
  return running
}

/** The server that runs in a data directory; null when none does. */
export const findPostmaster = (directory: string): Postmaster | null =>
  findPostmasters([directory]).get(directory) ?? null

/** The program that a server was started from, as the kernel says it; null when it cannot be told. */
export function prefixOf(postmaster: Postmaster): string | null {
  try {
    return (
      /^(.*)\/bin\/postgres(?: \(deleted\))?$/.exec(readlinkSync(`/proc/${postmaster.pid}/exe`))?.[1] ?? null
    )
  } catch {
    return null
  }
}

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
