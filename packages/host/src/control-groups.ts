import { closeSync, constants, lstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { readKernelFile } from './kernel-file'

/** What the kernel's cgroup file systems say: where a process is, and what is in the files of a group. */

// one buffer for all: these files have no size, and reading one the usual way takes a fresh 64 kB each time
const buffer = Buffer.alloc(32 * 1_024)

export function readGroupFile(directory: string, name: string): string | null {
  let fd: number | null = null
  try {
    fd = openSync(join(directory, name), constants.O_RDONLY | constants.O_NOFOLLOW)
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0))
  } catch {
    return null
  } finally {
    if (fd !== null) closeSync(fd)
  }
}

export const isGroup = (directory: string): boolean =>
  lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() === true

/** Reads /proc/PID/cgroup; empty where the process has ended. */
export type GroupsOf = (pid: number) => string
export function groupsOf(pid: number): string {
  try {
    return readKernelFile(`/proc/${pid}/cgroup`)
  } catch {
    return ''
  }
}

/** `name value` lines. */
export function numbersOf(text: string | null): Map<string, number> {
  const numbers = new Map<string, number>()
  for (const line of text?.split('\n') ?? []) {
    const [name, value] = line.split(' ')
    if (name && value !== undefined) numbers.set(name, Number(value))
  }
  return numbers
}

/** A number of its own in a file; null where there is none, or it is `max`. */
export function numberIn(text: string | null): number | null {
  const value = Number(text?.trim() || Number.NaN)
  return Number.isFinite(value) ? value : null
}

/** Seconds in which some process waited, of a file of pressure: `some avg10=0.00 … total=1500000`; null where none are counted. */
export function secondsWaited(text: string | null): number | null {
  const total = /^some .*total=(\d+)/m.exec(text ?? '')?.[1]
  return total === undefined ? null : Number(total) / 1e6
}

/** Where a process is, by controller; the controllers of cgroup v2 are all under ''. */
export function parseOwnGroups(text: string): Map<string, string> {
  const groups = new Map<string, string>()
  for (const line of text.split('\n')) {
    const match = /^\d+:([^:]*):(.*)$/.exec(line)
    if (match)
      for (const controller of (match[1] as string).split(',')) groups.set(controller, match[2] as string)
  }
  return groups
}

export type GroupMount = { version: 1 | 2; controllers: string[]; root: string; path: string }

/** The cgroup file systems among the mounts of /proc/self/mountinfo. */
export function parseGroupMounts(text: string): GroupMount[] {
  return text.split('\n').flatMap((line) => {
    const [before, after] = line.split(' - ')
    const [, , , root, path] = before?.split(' ') ?? []
    const [type, , options] = after?.split(' ') ?? []
    if (!root || !path || (type !== 'cgroup' && type !== 'cgroup2')) return []
    return {
      version: type === 'cgroup2' ? 2 : 1,
      controllers: type === 'cgroup2' ? [''] : (options?.split(',') ?? []),
      root,
      path,
    }
  })
}

/** The directory of a group, which mountinfo may show from below another one than the first. */
export function directoryOf(mount: GroupMount, group: string): string {
  // from outside of a cgroup namespace the kernel writes a group as /../other: nothing of it can be seen here
  if (group.split('/').includes('..')) return mount.path
  const below = mount.root === '/' ? group : group.slice(mount.root.length)
  const isBelow = mount.root === '/' || group === mount.root || group.startsWith(`${mount.root}/`)
  return join(mount.path, isBelow ? below : '')
}

export type DeviceUse = { readBytes: number; writeBytes: number; reads: number; writes: number }

/** Lines of `254:0 Read 4096`. */
export function throttledUse(bytes: string | null, requests: string | null): Map<string, DeviceUse> {
  const all = new Map<string, DeviceUse>()
  const add = (text: string | null, fields: { Read: keyof DeviceUse; Write: keyof DeviceUse }) => {
    for (const line of text?.split('\n') ?? []) {
      const [number, what, value] = line.split(' ')
      if (!number || value === undefined || (what !== 'Read' && what !== 'Write')) continue
      const use = all.get(number) ?? { readBytes: 0, writeBytes: 0, reads: 0, writes: 0 }
      use[fields[what]] = Number(value)
      all.set(number, use)
    }
  }
  add(bytes, { Read: 'readBytes', Write: 'writeBytes' })
  add(requests, { Read: 'reads', Write: 'writes' })
  return all
}

/** Lines of `254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0`. */
export function ioUse(text: string | null): Map<string, DeviceUse> {
  return new Map(
    [...wordsByDevice(text)].map(([number, words]) => {
      const of = (word: string) => Number(words.get(word) ?? 0)
      return [
        number,
        { readBytes: of('rbytes'), writeBytes: of('wbytes'), reads: of('rios'), writes: of('wios') },
      ]
    }),
  )
}

/** Lines of a device’s number and words `name=value`. */
export function wordsByDevice(text: string | null): Map<string, Map<string, string>> {
  const all = new Map<string, Map<string, string>>()
  for (const line of text?.split('\n') ?? []) {
    const [number, ...words] = line.trim().split(' ')
    if (!number || words.length === 0) continue
    all.set(number, new Map(words.map((w) => w.split('=') as [string, string])))
  }
  return all
}
