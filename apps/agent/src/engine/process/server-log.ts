import { closeSync, fstatSync, readSync } from 'node:fs'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { formatBytes } from '@floe/domain'
import { readDisks } from '../../host/disks'
import { oomKillOf, readKernelLog } from '../../host/kernel-log'
import { openOwnedFile, statOwnedFile } from '../../host/owned-files'
import { listInTree } from '../../host/tree'
import type { InstanceLayout } from '../directory/layout'

/** Names of the server log's files of one kind, oldest first: their names are their times. */
export function logFiles(logDirectory: string, extension: '.json' | '.log'): string[] {
  try {
    return listInTree(logDirectory)
      .filter((f) => f.startsWith('engine-') && f.endsWith(extension))
      .sort()
  } catch {
    return []
  }
}

/** The last bytes of a file as text, from a whole line on; empty when there is no such file, or something else in its place. */
export function readTail(path: string, bytes = 16_384): string {
  let fd: number | null
  try {
    fd = openOwnedFile(path)
  } catch {
    return ''
  }
  if (fd === null) return ''
  try {
    const size = fstatSync(fd).size
    const start = Math.max(0, size - bytes)
    const buffer = Buffer.alloc(size - start)
    const text = buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, start)).toString('utf8')
    return start === 0 ? text : text.slice(text.indexOf('\n') + 1)
  } finally {
    closeSync(fd)
  }
}

const plain = /^.*?(LOG|FATAL|PANIC|ERROR|DETAIL|HINT):\s+(.*)$/
const configurationError =
  /syntax error in file|unrecognized configuration parameter|invalid value for parameter|configuration file .* contains errors|could not (?:load|access|map|create|bind|open)/

/** One entry of the server's JSON log, as far as it is used here. */
export type LogEntry = {
  timestamp?: string
  backend_type?: string
  error_severity?: string
  message?: string
  detail?: string
  hint?: string
}

/** Milliseconds since the epoch of a JSON log's `2026-11-21 08:27:03.468 UTC`; null for another time zone. */
export function logTime(timestamp: string | undefined): number | null {
  const m = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) (?:UTC|GMT)$/.exec(timestamp ?? '')
  return m ? Date.parse(`${m[1]}T${m[2]}Z`) : null
}

/** Whose FATAL ends the server; that of any other process (a walreceiver’s, a worker’s) ends that process. */
const endsServer = (e: LogEntry) =>
  e.error_severity === 'PANIC' ||
  (e.error_severity === 'FATAL' &&
    /^(postmaster|startup|standalone backend)$/.test(e.backend_type ?? 'postmaster'))

/** Its last life as a standby ends here; what it said of its primary before says nothing of what came later. */
const promotion = /^(received promote request|selected new timeline ID|archive recovery complete)/

/** What the server wrote to its log since a time, oldest first, as far as the tail of the newest file goes. */
export function entriesSince(layout: InstanceLayout, sinceMs: number): LogEntry[] {
  const newest = logFiles(layout.logDirectory, '.json').at(-1)
  if (!newest) return []
  return readTail(join(layout.logDirectory, newest))
    .split('\n')
    .map(parseEntry)
    .filter((e): e is LogEntry => e !== null && (logTime(e.timestamp) ?? 0) >= sinceMs)
}

function changedAt(path: string): number {
  try {
    return statOwnedFile(path)?.mtimeMs ?? 0
  } catch {
    return 0
  }
}

/** What the engine printed before it had a log of its own; created again at each start. */
function startWords(layout: InstanceLayout, sinceMs: number): string[] {
  const writtenAt = changedAt(layout.startLog)
  // the clock of files may be a moment behind
  if (writtenAt + 1_000 < sinceMs) return []
  const words: string[] = []
  for (const line of readTail(layout.startLog).split('\n')) {
    const m = plain.exec(line)
    if (!m) continue
    if ((m[1] === 'DETAIL' || m[1] === 'HINT') && words.length > 0) words.push(`${words.pop()} ${m[2]}`)
    else if (m[1] === 'FATAL' || m[1] === 'PANIC' || configurationError.test(m[2] as string))
      words.push(m[2] as string)
  }
  return words
}

/**
 * Why an engine ended or did not start, in its own words: what ended it and what was wrong with its configuration, since a
 * time and its last promotion; at most five, newest last. What clients caused is left out. Empty when it said nothing.
 */
export function lastWords(layout: InstanceLayout, sinceMs: number): string[] {
  const entries = entriesSince(layout, sinceMs)
  const promoted = entries.findLastIndex((e) => promotion.test(e.message ?? ''))
  const words = entries
    .slice(promoted + 1)
    .filter((e) => e.message && e.backend_type !== 'client backend')
    .filter((e) => endsServer(e) || configurationError.test(e.message as string))
    .map((e) => [e.message, e.detail, e.hint].filter(Boolean).join(' '))
  return [...new Set([...startWords(layout, sinceMs), ...words])].slice(-5)
}

/** What an engine says last is said within this time before its end. */
const LAST_WORDS_MS = 10_000

/** With less room than this no WAL segment can be made. */
const SEGMENT_BYTES = 16 * 1024 * 1024

/** What is left on the fullest of the disks of these directories. */
const roomOn = (directories: readonly string[]): number =>
  Math.min(...readDisks(directories).map((disk) => disk.freeBytes))

const noSpace = /No space left on device/

/** What a server process (not a client's) said of a full disk, where its disk had still room for it. */
function saidDiskFull(layout: InstanceLayout, sinceMs: number): string | undefined {
  const of = entriesSince(layout, sinceMs).findLast(
    (e) => e.backend_type !== 'client backend' && noSpace.test(`${e.message} ${e.detail}`),
  )
  return of && [of.message, of.detail].filter(Boolean).join(' ')
}

/**
 * Why a server that nobody stopped is gone: its own last words, the kernel’s, that its disk is full, on which no last word
 * has room either, or that there is nothing. `aliveAt`: when it was last seen; 0 where this agent never saw it, and then its
 * last entry says when it ended.
 */
export function whyItEnded(
  layout: InstanceLayout,
  seen: { orderedStartAt: number; aliveAt: number; pid: number | null },
  roomOf = roomOn,
): string {
  const lastEntryAt = () => logTime(entriesSince(layout, 0).at(-1)?.timestamp) ?? Date.now()
  const failedStart = seen.orderedStartAt > seen.aliveAt
  const endedAfter = failedStart ? seen.orderedStartAt : seen.aliveAt || lastEntryAt()
  const since = failedStart ? endedAfter : Math.max(seen.orderedStartAt, endedAfter - LAST_WORDS_MS)
  const words = lastWords(layout, since)
  if (words.length > 0) return words.join('\n')
  // the kernel's clock of its log is not exactly that of its uptime
  const withinMs = Date.now() - since + 60_000
  const records = seen.pid === null ? null : readKernelLog()
  const killed = seen.pid !== null && records && oomKillOf(records, seen.pid, withinMs, uptime() * 1_000)
  if (killed) return `the kernel killed it for want of memory: ${killed}`
  const full = saidDiskFull(layout, since)
  if (full) return full
  const room = roomOf([layout.dataDirectory, layout.logDirectory])
  if (room < SEGMENT_BYTES)
    return `it ended without a word in its log, and its disk is full: ${formatBytes(room)} are left, less than a WAL segment`
  return 'it ended without a word in its log: killed from outside or by the kernel (out of memory?)'
}

/** What its own processes (not clients) reported as errors since a time, oldest first, at most twenty. */
export function recentComplaints(layout: InstanceLayout, sinceMs: number): string[] {
  const newest = logFiles(layout.logDirectory, '.json').at(-1)
  if (!newest) return []
  const words = readTail(join(layout.logDirectory, newest))
    .split('\n')
    .map(parseEntry)
    .filter(
      (e) =>
        e?.message &&
        e.backend_type !== 'client backend' &&
        (logTime(e.timestamp) ?? 0) >= sinceMs &&
        (/^(ERROR|FATAL|PANIC)$/.test(e.error_severity ?? '') ||
          /forked off|not in this server/.test(e.message)),
    )
    .map((e) => [e?.message, e?.detail, e?.hint].filter(Boolean).join(' '))
  return words.slice(-20)
}

export function parseEntry(line: string): LogEntry | null {
  try {
    return JSON.parse(line) as LogEntry
  } catch {
    return null
  }
}
