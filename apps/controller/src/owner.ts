import { readFileSync } from 'node:fs'

/** When a process of this machine started, in ticks since boot; undefined when there is no such process. */
export function processStart(pid: number): string | undefined {
  try {
    // the command in parentheses may hold anything, so count from its end
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

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
