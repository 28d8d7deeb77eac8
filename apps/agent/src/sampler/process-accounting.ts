import { readKernelFile } from '@floe/host/kernel-file'
import { isRunning, readChild, readProcess, TICKS_PER_SECOND } from '@floe/host/process'
import type { ProcessTree } from '../host/process-table'

const PAGE_BYTES = 4_096

export type ProcessTotals = {
  /** Seconds of processor time of all processes, living and reaped. */
  cpuSeconds: number
  memoryBytes: number
  readBytes: number | null
  writeBytes: number | null
  processes: number
}

/**
 * What an instance's processes have used so far. Ended ones stay counted, because the kernel adds a reaped child's time
 * and I/O to its parent, the postmaster. Memory is the private part of each, plus the shared part once: that of the
 * process which has touched most of it. Null when the postmaster is gone.
 */
export function readProcessTotals(postmasterPid: number, tree: ProcessTree): ProcessTotals | null {
  const postmaster = readProcess(postmasterPid)
  if (!isRunning(postmaster)) return null
  let ticks = postmaster.ticks + postmaster.childrenTicks
  let processes = 1
  const memory = { private: 0, shared: 0 }
  const io = { read: 0, write: 0, known: true }
  addMemory(postmasterPid, memory)
  addIo(postmasterPid, io)
  for (const pid of tree.childrenOf(postmasterPid)) {
    const child = readChild(pid, postmasterPid)
    if (child === null) continue
    ticks += child.ticks + child.childrenTicks
    processes++
    addMemory(pid, memory)
    addIo(pid, io)
  }
  return {
    cpuSeconds: ticks / TICKS_PER_SECOND,
    memoryBytes: memory.private + memory.shared,
    readBytes: io.known ? io.read : null,
    writeBytes: io.known ? io.write : null,
    processes,
  }
}

function addMemory(pid: number, sum: { private: number; shared: number }): void {
  try {
    const [, resident, shared] = readKernelFile(`/proc/${pid}/statm`).split(' ').map(Number)
    sum.private += Math.max(0, (resident as number) - (shared as number)) * PAGE_BYTES
    sum.shared = Math.max(sum.shared, (shared as number) * PAGE_BYTES)
  } catch {
    // ended between the list and the look
  }
}

function addIo(pid: number, sum: { read: number; write: number; known: boolean }): void {
  try {
    const text = readKernelFile(`/proc/${pid}/io`)
    sum.read += Number(/^read_bytes: (\d+)/m.exec(text)?.[1] ?? 0)
    sum.write += Number(/^write_bytes: (\d+)/m.exec(text)?.[1] ?? 0)
  } catch (error) {
    // a process that ended is no reason to doubt the sum; one that may not be read is
    if ((error as NodeJS.ErrnoException).code === 'EACCES') sum.known = false
  }
}
