import { closeSync, constants, lstatSync, mkdirSync, openSync, rmdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isGroup } from '@floe/host/control-groups'

/** What changes the kernel's cgroup file systems. Only root makes directories and writes there. */

/** Throws as the kernel refuses; never makes a file. */
export function writeGroupFile(directory: string, name: string, text: string): void {
  const fd = openSync(join(directory, name), constants.O_WRONLY | constants.O_NOFOLLOW)
  try {
    writeSync(fd, text)
  } finally {
    closeSync(fd)
  }
}

/** One that is there stays as it is. */
export function makeGroup(directory: string): void {
  if (!isGroup(directory)) mkdirSync(directory, { recursive: true })
}

/** Removes a group that nothing is in any more; one with a process or a group in it stays. True when it is gone. */
export function removeGroup(directory: string): boolean {
  try {
    rmdirSync(directory)
    return true
  } catch {
    return !isGroup(directory)
  }
}

/** Nobody else made it, so nobody else can have named it. */
export const isOwn = (directory: string): boolean =>
  lstatSync(directory, { throwIfNoEntry: false })?.uid === process.getuid?.()

/** Puts a process into a group; false where it has ended, or the kernel refuses. */
export function moveTo(directory: string, pid: number): boolean {
  try {
    writeGroupFile(directory, 'cgroup.procs', String(pid))
    return true
  } catch {
    return false
  }
}
