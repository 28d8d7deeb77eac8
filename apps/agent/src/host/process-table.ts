import { type ProcessStat, readProcess } from '@floe/host/process'
import {
  commandOf,
  listPids,
  processDirectory,
  programOf,
  runningUids,
  workingDirectoryNumber,
} from '@floe/host/process-facts'

/** A process with whose it is, what it runs and where. What cannot be read of it is null. */
export type ProcessSeen = {
  stat: ProcessStat
  /** Base name of its executable file, also where that was removed. */
  program: string | null
  /** Its command line; a program may have put a title in its place, which is then all of it. */
  command: string[]
  /** Its current directory by name, and by number: a directory that is renamed keeps its number. */
  directory: string | null
  directoryNumber: string | null
}

/** The processes of each user, listed for all instances together. */
export class ProcessesOfUsers {
  #byUid = new Map<number, number[]>()
  #seen = new Map<number, ProcessSeen | null>()
  #listedAt = Number.NEGATIVE_INFINITY

  /** Those that run; at most `maxAgeMs` old. One that has ended is none, though nobody has reaped it. */
  of(uid: number, maxAgeMs = 0): ProcessSeen[] {
    const now = performance.now()
    if (now - this.#listedAt >= maxAgeMs) {
      this.#byUid = listByUid()
      this.#seen = new Map()
      this.#listedAt = now
    }
    return (this.#byUid.get(uid) ?? []).flatMap((pid) => {
      const known = this.#seen.get(pid)
      const seen = known === undefined ? lookAt(pid) : known
      this.#seen.set(pid, seen)
      return seen ?? []
    })
  }
}

/** A process counts for each of its uids: real, effective, saved, of the file system. */
function listByUid(): Map<number, number[]> {
  const byUid = new Map<number, number[]>()
  for (const pid of listPids())
    for (const uid of runningUids(pid)) {
      const pids = byUid.get(uid)
      if (pids) pids.push(pid)
      else byUid.set(uid, [pid])
    }
  return byUid
}

/** Every uid that a process runs with, in any way. */
export const uidsOfProcesses = (): Set<number> => new Set(listByUid().keys())

function lookAt(pid: number): ProcessSeen | null {
  const stat = readProcess(pid)
  if (stat === null) return null
  return {
    stat,
    program: programOf(pid),
    command: commandOf(pid),
    directory: processDirectory(pid),
    directoryNumber: workingDirectoryNumber(pid),
  }
}

/** Children by parent, kept up cheaply: only processes not seen before are opened. */
export class ProcessTree {
  #parents = new Map<number, number>()
  #children = new Map<number, number[]>()
  #refreshedAt = Number.NEGATIVE_INFINITY

  /** Pids of the direct children; at most `maxAgeMs` old. */
  childrenOf(pid: number, maxAgeMs = 500, now = performance.now()): readonly number[] {
    if (now - this.#refreshedAt > maxAgeMs) this.#refresh(now)
    return this.#children.get(pid) ?? []
  }

  #refresh(now: number): void {
    const parents = new Map<number, number>()
    const children = new Map<number, number[]>()
    for (const pid of listPids()) {
      const parent = this.#parents.get(pid) ?? readProcess(pid)?.parent
      if (parent === undefined) continue
      parents.set(pid, parent)
      const siblings = children.get(parent)
      if (siblings) siblings.push(pid)
      else children.set(parent, [pid])
    }
    this.#parents = parents
    this.#children = children
    this.#refreshedAt = now
  }
}

/**
 * Ends every process that works in or on a directory: left over from a task whose agent was killed. Returns how many.
 * The directory has to be one that only that task uses.
 */
export function endProcessesIn(directory: string): number {
  let ended = 0
  for (const pid of listPids()) {
    if (pid === process.pid) continue
    const where = processDirectory(pid)
    if (where !== directory && !where?.startsWith(`${directory}/`) && !commandNames(pid, directory)) continue
    try {
      process.kill(pid, 'SIGKILL')
      ended++
    } catch {
      // gone in the meantime
    }
  }
  return ended
}

const commandNames = (pid: number, directory: string): boolean =>
  commandOf(pid).some((a) => a === directory || a.startsWith(`${directory}/`))
