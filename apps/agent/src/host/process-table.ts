import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { readSmallFile } from './small-file'

/** One process as /proc/PID/stat tells it. Times are in clock ticks (100 a second on Linux). */
export type ProcessStat = {
  pid: number
  state: string
  parent: number
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
  try {
    const [its, ours] = [statSync(`/proc/${pid}/cwd`), statSync(directory)]
    return its.ino === ours.ino && its.dev === ours.dev
  } catch {
    return false
  }
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

function commandNames(pid: number, directory: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      .split('\0')
      .some((a) => a === directory || a.startsWith(`${directory}/`))
  } catch {
    return false
  }
}
