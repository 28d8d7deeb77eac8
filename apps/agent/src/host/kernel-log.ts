import { closeSync, constants, openSync, readSync } from 'node:fs'

/** A record is a line of at most 1 kB with its escapes; the kernel refuses a smaller buffer than the record. */
const buffer = Buffer.alloc(8_192)
/** The kernel's buffer holds fewer; whatever is there is read in some milliseconds. */
const RECORDS_MAX = 20_000

/** The records in the kernel's log, oldest first, as /dev/kmsg has them; null where it may not be read. Never waits. */
export function readKernelLog(path = '/dev/kmsg'): string[] | null {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch {
    return null
  }
  const records: string[] = []
  try {
    for (let reads = 0; reads < RECORDS_MAX; reads++)
      try {
        const bytes = readSync(fd, buffer, 0, buffer.length, null)
        if (bytes === 0) break
        records.push(buffer.toString('utf8', 0, bytes))
      } catch (error) {
        // the record was written over before it was read: the next read goes on with the oldest that is left
        if ((error as NodeJS.ErrnoException).code !== 'EPIPE') break
      }
  } finally {
    closeSync(fd)
  }
  return records
}

const record = /^\d+,\d+,(\d+),[^;]*;(.*)/
const oomKill = /out of memory: killed process (\d+) /i

/**
 * The kernel's own words where it killed this process for want of memory, undefined otherwise; only records of the last
 * `withinMs` before `uptimeMs` count, as pids are given out again.
 */
export function oomKillOf(
  records: readonly string[],
  pid: number,
  withinMs: number,
  uptimeMs: number,
): string | undefined {
  for (const text of records.toReversed()) {
    const [, microseconds, words = ''] = record.exec(text) ?? []
    if (Number(microseconds) / 1_000 < uptimeMs - withinMs) return undefined
    if (Number(oomKill.exec(words)?.[1]) === pid) return words
  }
  return undefined
}

// what a process calls itself may hold commas; the group above it is root's
const groupKill =
  /^oom-kill:constraint=(\w+),.*?(?:,oom_memcg=([^,]*))?(?:,global_oom)?,task_memcg=([^,]*),task=(.*),pid=(\d+),uid=\d+$/

export type GroupKill = { uptimeMs: number; pid: number; name: string; ownLimit: boolean }

/**
 * The last process of a group, or of one below, that the kernel killed for want of memory; null where its log contains none.
 * `name` is a part of the group's path that no other group has.
 */
export function lastKillIn(records: readonly string[], name: string): GroupKill | null {
  for (const text of records.toReversed()) {
    const [, microseconds, words = ''] = record.exec(text) ?? []
    const [, constraint, limited = '', group = '', task = '', pid] = groupKill.exec(words) ?? []
    if (!group.includes(name)) continue
    return {
      uptimeMs: Number(microseconds) / 1_000,
      pid: Number(pid),
      name: task,
      ownLimit: constraint === 'CONSTRAINT_MEMCG' && limited.includes(name),
    }
  }
  return null
}
