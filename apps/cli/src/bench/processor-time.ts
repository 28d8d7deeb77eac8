import { readKernelFile } from '@floe/host/kernel-file'
import { type ProcessStat, readProcess, TICKS_PER_SECOND } from '@floe/host/process'
import { listPids } from '@floe/host/process-facts'

function statOf(pid: number): ProcessStat {
  const stat = readProcess(pid)
  if (stat === null) throw new Error(`there is no process ${pid}`)
  return stat
}

/** Processor seconds that a process has used so far. */
export const processorSeconds = (pid: number): number => statOf(pid).ticks / TICKS_PER_SECOND

/** The same of a process with its children, also those that ended: a postmaster with its backends. */
export function familySeconds(pid: number): number {
  const { ticks, childrenTicks } = statOf(pid)
  const children = listPids().flatMap((other) => readProcess(other) ?? [])
  return (
    children
      .filter((child) => child.parent === pid)
      .reduce((sum, child) => sum + child.ticks, ticks + childrenTicks) / TICKS_PER_SECOND
  )
}

/** Memory of a process that is not swapped out, in MB of 1024 kB. */
export function residentMegabytes(pid: number): number {
  return Number(readKernelFile(`/proc/${pid}/status`).match(/^VmRSS:\s+(\d+) kB/m)?.[1] ?? Number.NaN) / 1024
}
