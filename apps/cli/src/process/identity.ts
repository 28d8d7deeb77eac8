import { readFileSync } from 'node:fs'

/**
 * What tells one process from another that later got the same pid: the moment it started, in clock ticks since this
 * boot, and the boot.
 */
export type ProcessIdentity = { pid: number; startTicks: number; bootId: string }

let bootId: string | undefined
/** New with every boot of the machine. */
export function currentBootId(): string {
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return bootId
}

/** State letter and start time of a process; null when there is none. */
export function readStat(pid: number): { state: string; startTicks: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // the name in parentheses may hold spaces and parentheses
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] as string, startTicks: Number(fields[19]) }
  } catch {
    return null
  }
}

/** The identity of a running process; null when it is gone or only waits to be reaped. */
export function identify(pid: number): ProcessIdentity | null {
  const stat = readStat(pid)
  return stat === null || stat.state === 'Z' || stat.state === 'X'
    ? null
    : { pid, startTicks: stat.startTicks, bootId: currentBootId() }
}

/** True when that very process still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identify(identity.pid)
  return now !== null && now.startTicks === identity.startTicks && now.bootId === identity.bootId
}

/** Waits until the process is gone; false when it still runs after the deadline. */
export async function waitUntilGone(identity: ProcessIdentity, deadlineMs: number): Promise<boolean> {
  const end = Date.now() + deadlineMs
  while (isAlive(identity)) {
    if (Date.now() >= end) return false
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return true
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
