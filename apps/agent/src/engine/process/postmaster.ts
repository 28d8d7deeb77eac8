import { uptime } from 'node:os'
import { isRunning, readProcess, TICKS_PER_SECOND } from '@floe/host/process'
import { commandOf, programOf, runsAs, worksIn } from '@floe/host/process-facts'
import { waitFor } from '@floe/host/wait'
import type { EngineUser } from '../../host/engine-user'
import { readSmallOwnedFile } from '../../host/owned-files'
import type { ProcessSeen } from '../../host/process-table'
import type { InstanceLayout } from '../directory/layout'

export type Postmaster = {
  pid: number
  /** Ticks since boot: distinguishes it from a later process with the same pid. */
  startTicks: number
  /** Its start, ms since the epoch, in whole seconds. */
  startedAt: number
  /** The engine's own word from postmaster.pid: starting, stopping, ready, standby. */
  status: string | null
}

/** Base name of the engine's program; its children are the same one. */
export const ENGINE_PROGRAM = 'postgres'

/** A child of a postmaster puts a title in place of its command line. */
export const isChildTitle = (command: readonly string[]): boolean => /^postgres: /.test(command[0] ?? '')

/**
 * The running postmaster of a data directory as its postmaster.pid names it, or null. That file alone proves nothing: it
 * outlives a crash, its pid may be another process by now, and the instance's superuser can write any pid into it. A
 * postmaster is the engine's program, runs as the instance's user, works in the data directory and is nobody's backend.
 * That none is named does not prove that none runs: see instance-processes.ts.
 */
export function findPostmaster(layout: InstanceLayout, user: Pick<EngineUser, 'uid'>): Postmaster | null {
  const lines = pidFileLines(layout)
  if (lines === null) return null
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 1) return null
  const stat = readProcess(pid)
  if (!isRunning(stat) || !worksIn(pid, layout.dataDirectory)) return null
  if (!runsAs(pid, uidOf(user)) || programOf(pid) !== ENGINE_PROGRAM || isChildTitle(commandOf(pid)))
    return null
  return {
    pid,
    startTicks: stat.startTicks,
    startedAt: Number(lines[2]) * 1_000,
    status: lines[7]?.trim() || null,
  }
}

/** The uid that an instance's processes have. */
export const uidOf = (user: Pick<EngineUser, 'uid'>): number => user.uid ?? process.getuid?.() ?? 0

/** A postmaster that its postmaster.pid does not name, or not any more; the engine's own word is not known of it. */
export const unnamedPostmaster = ({ stat }: ProcessSeen): Postmaster => ({
  pid: stat.pid,
  startTicks: stat.startTicks,
  startedAt: Date.now() - ageMs(stat.startTicks),
  status: null,
})

/** How long a process has run. */
export const ageMs = (startTicks: number): number =>
  Math.max(0, (uptime() - startTicks / TICKS_PER_SECOND) * 1_000)

/**
 * True while postmaster.pid names a process that has ended and is not reaped yet: to an engine that starts, its pid looks
 * alive, and it refuses the data directory.
 */
export function waitsToBeReaped(layout: InstanceLayout): boolean {
  const lines = pidFileLines(layout)
  if (lines === null) return false
  const stat = readProcess(Number(lines[0]))
  return stat !== null && !isRunning(stat)
}

/** What the machine's first process has not reaped by then keeps the engine from starting, which says so. */
const REAPED_BOUND_MS = 10_000

/** Waits until a start is not refused for a process that has ended; each start of an engine in a data directory comes after it. */
export async function waitUntilReaped(layout: InstanceLayout, signal: AbortSignal): Promise<void> {
  await waitFor(async () => !waitsToBeReaped(layout), { boundMs: REAPED_BOUND_MS, everyMs: 50, signal })
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
  return isRunning(stat) && stat.startTicks === p.startTicks
}
