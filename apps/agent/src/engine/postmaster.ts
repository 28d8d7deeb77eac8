import { isAlive, readProcess, worksIn } from '../host/process-table'
import { readSmallOwnedFile } from '../host/small-file'
import type { InstanceLayout } from './layout'

export type Postmaster = {
  pid: number
  /** Ticks since boot: tells it from a later process with the same pid. */
  startTicks: number
  /** Its start, ms since the epoch, in whole seconds. */
  startedAt: number
  /** The engine's own word from postmaster.pid: starting, stopping, ready, standby. */
  status: string | null
}

/**
 * The running postmaster of a data directory, or null. postmaster.pid alone proves nothing: it outlives a crash, and its
 * pid may be another process by now. A postmaster works in its data directory, and its backends are not its parents.
 */
export function findPostmaster(layout: InstanceLayout): Postmaster | null {
  const lines = pidFileLines(layout)
  if (lines === null) return null
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 1) return null
  const stat = readProcess(pid)
  if (!isAlive(stat) || !worksIn(pid, layout.dataDirectory)) return null
  return {
    pid,
    startTicks: stat.startTicks,
    startedAt: Number(lines[2]) * 1_000,
    status: lines[7]?.trim() || null,
  }
}

/**
 * True while postmaster.pid names a process that has ended and is not reaped yet: to an engine that starts, its pid looks
 * alive, and it refuses the data directory.
 */
export function waitsToBeReaped(layout: InstanceLayout): boolean {
  const lines = pidFileLines(layout)
  if (lines === null) return false
  const stat = readProcess(Number(lines[0]))
  return stat !== null && !isAlive(stat)
}

/** Null also where something else lies in its place. */
function pidFileLines(layout: InstanceLayout): string[] | null {
  try {
    return readSmallOwnedFile(layout.postmasterPid)?.split('\n') ?? null
  } catch {
    return null
  }
}

/** True while exactly this process runs. */
export function postmasterRuns(p: Pick<Postmaster, 'pid' | 'startTicks'>): boolean {
  const stat = readProcess(p.pid)
  return isAlive(stat) && stat.startTicks === p.startTicks
}
