import { readdirSync, readFileSync } from 'node:fs'

const TICKS_PER_SECOND = 100

const statFields = (pid: number | string): string[] => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Processor seconds that a process has used so far. */
export function processorSeconds(pid: number): number {
  const fields = statFields(pid)
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** The same of a process with its children, also those that ended: a postmaster with its backends. */
export function familySeconds(pid: number): number {
  const fields = statFields(pid)
  let ticks = [11, 12, 13, 14].reduce((sum, i) => sum + Number(fields[i]), 0)
  for (const other of readdirSync('/proc')) {
    if (!/^\d+$/.test(other)) continue
    try {
      const child = statFields(other)
      if (Number(child[1]) === pid) ticks += Number(child[11]) + Number(child[12])
    } catch {
      // it ended meanwhile
    }
  }
  return ticks / TICKS_PER_SECOND
}

/** Memory of a process that is not swapped out, in MB of 1024 kB. */
export function residentMegabytes(pid: number): number {
  return (
    Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+) kB/m)?.[1] ?? Number.NaN) / 1024
  )
}
