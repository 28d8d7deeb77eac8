import { millisecondsOf } from '@floe/domain'

/** What an engine that recovers says of its way, read line by line. */
export class RecoveryLog {
  /** The newest file of WAL that came from the archive. */
  lastWal: string | null = null
  /** How far it has replayed, as it says once a second. */
  lsn: string | null = null
  /** It lets clients in, to read or, where it could not wait at its target, to write. */
  open = false
  /** It has come to its target and stands there. */
  atTarget = false
  /** A setting of its is smaller than that of the engine that wrote the WAL. */
  tooSmall = false
  /** When the newest transaction in the WAL ended, reported at the end of it. */
  lastTransaction: string | null = null
  #rest = ''
  #lines: string[] = []

  hear(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = (lines.pop() ?? '').slice(-LINE_MAX)
    for (const line of lines) this.#line(line)
  }

  /** What was fatal, with its detail, without prefixes. */
  get reason(): string {
    const from = this.#lines.findLastIndex((line) => /^(?:.* )?(?:FATAL|PANIC):/.test(line))
    const fatal = from < 0 ? this.#lines.slice(-3) : this.#lines.slice(from, from + 3)
    return fatal
      .filter((line) => from < 0 || /^(?:.* )?(?:FATAL|PANIC|DETAIL|HINT):/.test(line))
      .map((line) => line.replace(/^(?:.* )?[A-Z]+:\s+/, ''))
      .map((line) => (/[.!?]$/.test(line) ? line : `${line}.`))
      .join(' ')
      .slice(0, 1_000)
  }

  says(words: RegExp): boolean {
    return this.#lines.some((line) => words.test(line))
  }

  #line(line: string): void {
    this.#lines.push(line.slice(0, LINE_MAX))
    if (this.#lines.length > LINES_MAX) this.#lines.shift()
    const wal = /^LOG:\s+restored log file "([0-9A-F]{24})" from archive/.exec(line)?.[1]
    if (wal) this.lastWal = wal
    this.lsn = /^LOG:\s+redo in progress, .*current LSN: ([0-9A-F]+\/[0-9A-F]+)/.exec(line)?.[1] ?? this.lsn
    if (/^LOG:\s+database system is ready to accept (?:read-only )?connections/.test(line)) this.open = true
    if (/^LOG:\s+(?:pausing at the end of recovery|archive recovery complete)/.test(line))
      this.atTarget = true
    if (/insufficient parameter settings/.test(line)) this.tooSmall = true
    this.lastTransaction =
      /^LOG:\s+last completed transaction was at log time (\d{4}-\d\d-\d\d [\d:.]{8,15}\+00)$/.exec(
        line,
      )?.[1] ?? this.lastTransaction
  }
}

/** Its words come from a stranger: neither their number nor their length fills the agent's memory. */
const LINES_MAX = 200
const LINE_MAX = 4_000

/** `2026-11-24 15:00:00.123456+00` as ISO 8601; null where it is no such time. */
export const isoOf = (time: string): string | null =>
  /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00$/.test(time)
    ? time.replace(' ', 'T').replace(/\+00$/, 'Z')
    : null

/** A FlashbackTime as a setting of the engine takes it before it knows any name of a time zone. */
export function targetTime(at: string): string {
  const micros = /\.(\d{1,6})/.exec(at)?.[1] ?? ''
  const seconds = new Date(millisecondsOf(at)).toISOString().slice(0, 19)
  return `${seconds.replace('T', ' ')}.${micros.padEnd(6, '0')}+00`
}

/** One microsecond before such a time, in ISO 8601: the newest moment that WAL with nothing behind it reaches. */
export function justBefore(time: string): string | null {
  const [, seconds, fraction = ''] = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00$/.exec(time) ?? []
  if (!seconds) return null
  const micros =
    BigInt(Date.parse(`${seconds.replace(' ', 'T')}Z`)) * 1_000n + BigInt(fraction.padEnd(6, '0')) - 1n
  const part = (micros % 1_000_000n).toString().padStart(6, '0')
  return `${new Date(Number(micros / 1_000n)).toISOString().slice(0, 19)}.${part}Z`
}
