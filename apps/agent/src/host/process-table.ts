import { readdirSync, readlinkSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { readBeginning, readSmallFile } from './small-file'

/** One process as /proc/PID/stat tells it. Times are in clock ticks (100 a second on Linux). */
export type ProcessStat = {
  pid: number
  state: string
  parent: number
  session: number
  /** utime + stime, and those of its reaped children. */
  ticks: number
  childrenTicks: number
  /** Ticks since boot. With the pid it identifies a process for good. */
  startTicks: number
}

export const TICKS_PER_SECOND = 100

/** Parses /proc/PID/stat; the name in parentheses may itself hold spaces and parentheses. */
export function parseProcessStat(text: string): ProcessStat {
  const end = text.lastIndexOf(')')
  const f = text.slice(end + 2).split(' ')
  const at = (i: number) => Number(f[i])
  return {
    pid: Number.parseInt(text, 10),
    state: f[0] as string,
    parent: at(1),
    session: at(3),
    ticks: at(11) + at(12),
    childrenTicks: at(13) + at(14),
    startTicks: at(19),
  }
}

/** The process's stat, or null when there is no such process. */
export function readProcess(pid: number): ProcessStat | null {
  try {
    return parseProcessStat(readSmallFile(`/proc/${pid}/stat`))
  } catch {
    return null
  }
}

/** True while it runs: a zombie has ended. */
export function isAlive(p: ProcessStat | null): p is ProcessStat {
  return p !== null && p.state !== 'Z' && p.state !== 'X'
}

/** Current directory of a process, or null when it cannot be told. */
export function processDirectory(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return null
  }
}

/** True when a process works in this very directory, by whatever path either is named (a data directory may lie behind a link). */
export function worksIn(pid: number, directory: string): boolean {
  const its = directoryNumber(`/proc/${pid}/cwd`)
  return its !== null && its === directoryNumber(directory)
}

/** All pids, in no order. */
export function listPids(): number[] {
  const pids: number[] = []
  for (const name of readdirSync('/proc')) {
    const c = name.charCodeAt(0)
    if (c >= 48 && c <= 57) pids.push(Number(name))
  }
  return pids
}

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

/** Names a directory for as long as it, or a process that works in it, is there. */
export function directoryNumber(path: string): string | null {
  try {
    const { dev, ino } = statSync(path)
    return `${dev}:${ino}`
  } catch {
    return null
  }
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

/** Whether a process that runs has this uid, in any way. */
export const runsAs = (pid: number, uid: number): boolean => runningUids(pid).has(uid)

/** Every uid that a process runs with, in any way. */
export const uidsOfProcesses = (): Set<number> => new Set(listByUid().keys())

function runningUids(pid: number): Set<number> {
  try {
    const status = readSmallFile(`/proc/${pid}/status`)
    // the first thread may have ended while others of the process go on
    const threads = Number(/^Threads:\s+(\d+)/m.exec(status)?.[1] ?? 0)
    if (/^State:\s+[ZX]/m.test(status) && threads <= 1) return new Set()
    return new Set(/^Uid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/).map(Number))
  } catch {
    return new Set()
  }
}

function lookAt(pid: number): ProcessSeen | null {
  const stat = readProcess(pid)
  if (stat === null) return null
  return {
    stat,
    program: programOf(pid),
    command: commandOf(pid),
    directory: processDirectory(pid),
    directoryNumber: directoryNumber(`/proc/${pid}/cwd`),
  }
}

/** Base name of the file that a process executes, or null when it cannot be told. */
export function programOf(pid: number): string | null {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, ''))
  } catch {
    return null
  }
}

/** The words of its command line as far as they are in its first 64 kB, none where it cannot be read. */
export function commandOf(pid: number): string[] {
  try {
    return readBeginning(`/proc/${pid}/cmdline`).split('\0').filter(Boolean)
  } catch {
    return []
  }
}

/** Ends a process unless its pid is another one's by now. */
export function killProcess({ pid, startTicks }: Pick<ProcessStat, 'pid' | 'startTicks'>): void {
  if (readProcess(pid)?.startTicks !== startTicks) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it ended in the meantime
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
