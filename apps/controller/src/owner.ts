import { identify } from '@floe/host/process'

/** When a process of this machine started, in ticks since boot; undefined when none of that number runs. */
export const processStart = (pid: number): string | undefined => identify(pid)?.startTicks.toString()

let made = 0

/** The name a controller holds leases under: installation's host, process, its start, and which one of the process. */
export function makeOwner(hostId: string): string {
  made++
  return `${hostId}/${process.pid}/${processStart(process.pid) ?? '0'}/${made}`
}

/** True when an owner of this machine's controllers is a process that is gone: nobody has to wait for its leases. */
export function isDeadOwner(owner: string, hostId: string): boolean {
  const [host, pid, start] = owner.split('/')
  if (host !== hostId || !pid || !start) return false
  return processStart(Number(pid)) !== start
}
