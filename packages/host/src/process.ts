import { readKernelFile } from './kernel-file'
import { waitFor } from './wait'

/** One process as /proc/PID/stat reports it. Times are in clock ticks (100 a second on Linux). */
export type ProcessStat = {
  pid: number
  state: string
  parent: number
  session: number
  /** utime + stime, and those of its reaped children. */
  ticks: number
  childrenTicks: number
  /** Ticks since boot. With the pid and the boot it identifies a process for good. */
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

/** The process's stat, or null when there is no such process. One that has ended is there until it is reaped. */
export function readProcess(pid: number): ProcessStat | null {
  try {
    return parseProcessStat(readKernelFile(`/proc/${pid}/stat`))
  } catch {
    return null
  }
}

/** True while it runs: a zombie has ended. */
export function isRunning(p: ProcessStat | null): p is ProcessStat {
  return p !== null && p.state !== 'Z' && p.state !== 'X'
}

/**
 * The running process of a pid that somebody names as a child of that parent; null where it is none. A pid may be another
 * process by now, and anyone who names it may name any.
 */
export function readChild(pid: unknown, parent: number | null | undefined): ProcessStat | null {
  const stat = typeof pid === 'number' ? readProcess(pid) : null
  return isRunning(stat) && stat.parent === parent ? stat : null
}

/**
 * What distinguishes one process from another that later got the same pid: the moment it started, in clock ticks since this
 * boot, and the boot.
 */
export type ProcessIdentity = { pid: number; startTicks: number; bootId: string }

let bootId: string | undefined
/** New with every boot of the machine. */
export function currentBootId(): string {
  bootId ??= readKernelFile('/proc/sys/kernel/random/boot_id').trim()
  return bootId
}

/** The identity of a running process; null when it is gone or only waits to be reaped. */
export function identify(pid: number): ProcessIdentity | null {
  const stat = readProcess(pid)
  return isRunning(stat) ? { pid, startTicks: stat.startTicks, bootId: currentBootId() } : null
}

/** True when that very process still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identify(identity.pid)
  return now !== null && now.startTicks === identity.startTicks && now.bootId === identity.bootId
}

/** Waits until the process is gone; false when it still runs after the deadline. */
export async function waitUntilGone(identity: ProcessIdentity, deadlineMs: number): Promise<boolean> {
  return (await waitFor(() => !isAlive(identity), { boundMs: deadlineMs, everyMs: 50 })) !== null
}

/** Ends a process: asks first, and kills it when it has not gone by the deadline. */
export async function endProcess(identity: ProcessIdentity, deadlineMs: number): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isAlive(identity)) return
    try {
      process.kill(identity.pid, signal)
    } catch {
      return
    }
    if (await waitUntilGone(identity, signal === 'SIGTERM' ? deadlineMs : 5_000)) return
  }
}

/** Kills a process at once, unless its pid is another one's by now. */
export function killProcess({ pid, startTicks }: Pick<ProcessStat, 'pid' | 'startTicks'>): void {
  if (readProcess(pid)?.startTicks !== startTicks) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it ended in the meantime
  }
}
