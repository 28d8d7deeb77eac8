import { closeSync, fstatSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { openOwnedFile } from '../host/durable-files'
import type { InstanceLayout } from './layout'

/** Names of the server log's files of one kind, oldest first: their names are their times. */
export function logFiles(logDirectory: string, extension: '.json' | '.log'): string[] {
  try {
    return readdirSync(logDirectory)
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

/**
 * Why an engine ended or did not start, in its own words: fatal entries and those about its configuration since a time,
 * at most five, newest last. What clients caused is left out. Empty when it said nothing.
 */
export function lastWords(layout: InstanceLayout, sinceMs: number): string[] {
  const words: string[] = []
  for (const line of readTail(layout.startLog).split('\n')) {
    const m = plain.exec(line)
    if (!m) continue
    if ((m[1] === 'DETAIL' || m[1] === 'HINT') && words.length > 0) words.push(`${words.pop()} ${m[2]}`)
    else if (m[1] === 'FATAL' || m[1] === 'PANIC' || configurationError.test(m[2] as string))
      words.push(m[2] as string)
  }
  const newest = logFiles(layout.logDirectory, '.json').at(-1)
  if (newest)
    for (const line of readTail(join(layout.logDirectory, newest)).split('\n')) {
      const e = parseEntry(line)
      if (!e?.message || e.backend_type === 'client backend' || (logTime(e.timestamp) ?? 0) < sinceMs)
        continue
      if (e.error_severity === 'FATAL' || e.error_severity === 'PANIC' || configurationError.test(e.message))
        words.push([e.message, e.detail, e.hint].filter(Boolean).join(' '))
    }
  return [...new Set(words)].slice(-5)
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
