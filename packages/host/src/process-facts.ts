import { readdirSync, readlinkSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { readKernelFile, readLongKernelFile } from './kernel-file'

/** All pids, in no order. */
export function listPids(): number[] {
  const pids: number[] = []
  for (const name of readdirSync('/proc')) {
    const c = name.charCodeAt(0)
    if (c >= 48 && c <= 57) pids.push(Number(name))
  }
  return pids
}

/** Current directory of a process, or null when it is not known. */
export function processDirectory(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return null
  }
}

/** Names a file for as long as it, or a process that works in it, is there; a rename does not change it. */
export const fileNumber = ({ dev, ino }: { dev: number; ino: number }): string => `${dev}:${ino}`

/** The number of a directory, whatever path it is named by; null when there is none. */
export function directoryNumber(path: string): string | null {
  try {
    return fileNumber(statSync(path))
  } catch {
    return null
  }
}

/** The number of the directory that a process works in; null when it is not known. */
export const workingDirectoryNumber = (pid: number): string | null => directoryNumber(`/proc/${pid}/cwd`)

/** True when a process works in this very directory, by whatever path either is named (a data directory may lie behind a link). */
export function worksIn(pid: number, directory: string): boolean {
  const its = workingDirectoryNumber(pid)
  return its !== null && its === directoryNumber(directory)
}

/** The file that a process executes, also where that was removed; null when it is not known. */
export function programFileOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, '')
  } catch {
    return null
  }
}

/** Base name of the file that a process executes, or null when it is not known. */
export function programOf(pid: number): string | null {
  const file = programFileOf(pid)
  return file === null ? null : basename(file)
}

/** The name of the process that the kernel starts first, e.g. `systemd`; null when it cannot be told. */
export function firstProcess(): string | null {
  try {
    return readKernelFile('/proc/1/comm').trim()
  } catch {
    return null
  }
}

/** The words of its command line as far as they are in its first 64 kB, none where it cannot be read. */
export function commandOf(pid: number): string[] {
  try {
    return readLongKernelFile(`/proc/${pid}/cmdline`).split('\0').filter(Boolean)
  } catch {
    return []
  }
}

/** The user that a process acts as; null when it is gone. */
export function userOf(pid: number): number | null {
  try {
    // the owner of /proc/PID is root's for a process that hides its memory
    const uid = uidsIn(readKernelFile(`/proc/${pid}/status`))[1]
    return uid === undefined ? null : uid
  } catch {
    return null
  }
}

/** Every uid that a process which runs has: real, effective, saved, of the file system. None of one that has ended. */
export function runningUids(pid: number): Set<number> {
  try {
    const status = readKernelFile(`/proc/${pid}/status`)
    // the first thread may have ended while others of the process go on
    const threads = Number(/^Threads:\s+(\d+)/m.exec(status)?.[1] ?? 0)
    if (/^State:\s+[ZX]/m.test(status) && threads <= 1) return new Set()
    return new Set(uidsIn(status))
  } catch {
    return new Set()
  }
}

const uidsIn = (status: string): number[] =>
  /^Uid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/).map(Number) ?? []

/** Whether a process that runs has this uid, in any way. */
export const runsAs = (pid: number, uid: number): boolean => runningUids(pid).has(uid)
