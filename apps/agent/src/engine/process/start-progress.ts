import { formatDuration } from '@floe/domain'
import type { LogEntry } from './server-log'

const after = (seconds: string) => `after ${formatDuration(1_000 * Number(seconds))}`

/** What an engine that starts says of its way, by the sentence in its log, and what a person reads of that. */
const sentences: readonly [RegExp, (part: readonly string[]) => string][] = [
  [
    /^page repair reads WAL ahead, elapsed time: ([\d.]+) s, current LSN: ([0-9A-F]+\/[0-9A-F]+)$/,
    ([s = '', lsn]) => `page repair reads WAL ahead: at ${lsn} ${after(s)}`,
  ],
  [
    /^fetching WAL for page repair, elapsed time: ([\d.]+) s, current: ([0-9A-F]+\/[0-9A-F]+)$/,
    ([s = '', lsn]) => `page repair fetches WAL: at ${lsn} ${after(s)}`,
  ],
  [
    /^page repair verifies pages, elapsed time: ([\d.]+) s, part (\d+) of (\d+), (\d+) pages read, (\d+) torn$/,
    ([s = '', part, parts, read, torn]) =>
      // the part that it names is at work
      `page repair verifies pages: ${Math.floor((100 * (Number(part) - 1)) / Number(parts))} %, ${read} read, ${torn} torn, ${after(s)}`,
  ],
  [
    /^page repair fetches pages, elapsed time: ([\d.]+) s, (\d+) of (\d+) pages$/,
    ([s = '', done, wanted]) =>
      `page repair fetches pages: ${Math.floor((100 * Number(done)) / Math.max(1, Number(wanted)))} %, ${done} of ${wanted}, ${after(s)}`,
  ],
  [
    /^redo in progress, elapsed time: ([\d.]+) s, current LSN: ([0-9A-F]+\/[0-9A-F]+)$/,
    ([s = '', lsn]) => `WAL is replayed: at ${lsn} ${after(s)}`,
  ],
  [
    /^(?:syncing data directory|resetting unlogged relations) \([a-z-]+\), elapsed time: ([\d.]+) s, current path: /,
    ([s = '']) => `files are prepared for recovery, ${after(s)}`,
  ],
]

/** A phase that has ended, or a start that begins again: what was said before is of the past. */
const ends =
  /^(?:database system was |redo starts at |redo done at |page repair: \d+ blocks named|consistent recovery state reached)/

/** Recovery stands still until one of the sources answers; each reason is in the detail. */
const waits = /^recovery waits for a page repair source$/

/** The longest reason that is shown. */
const DETAIL_MAX = 1_000

/** How far the start of an engine is, from its log's entries, oldest first; null where it has said nothing of it, or is done. */
export function startProgress(entries: readonly LogEntry[]): string | null {
  let progress: string | null = null
  for (const { backend_type, message = '', detail } of entries) {
    if (backend_type !== 'startup') continue
    if (ends.test(message)) progress = null
    else if (waits.test(message)) progress = [message, detail].filter(Boolean).join(': ').slice(0, DETAIL_MAX)
    else progress = readSentence(message) ?? progress
  }
  return progress
}

function readSentence(message: string): string | null {
  for (const [pattern, words] of sentences) {
    const found = pattern.exec(message)
    if (found) return words(found.slice(1))
  }
  return null
}
