import { type Fault, type FaultError, formatFault } from '@floe/domain'
import { spoken } from './installation/package'

const escaped = (c: string) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`

/** Text of strangers (names, words of an engine) in a cell or within a line: it moves no cursor and begins no line of its own. */
export const visible = (text: string): string => text.replace(/\p{C}/gu, escaped)

/** Lines in which nothing steers a terminal, no matter who has written them. */
const steady = (lines: string): string => lines.replace(/[^\P{C}\n\t]/gu, escaped)

/** The same value; JSON itself lets DEL and the control characters after it stand, and terminals follow some of these. */
const json = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(
    /[\u007f-\u009f]/g,
    (c) => `\\u00${c.charCodeAt(0).toString(16)}`,
  )

/** Prints lines for people. */
export function printWords(lines: string): void {
  process.stdout.write(spoken(`${steady(lines)}\n`))
}

/** Prints one line for programs. */
export function printJsonLine(value: unknown): void {
  process.stdout.write(`${json(value)}\n`)
}

/** Says beside the result what happens meanwhile. */
export function tell(line: string): void {
  process.stderr.write(spoken(`floe: ${steady(line)}\n`))
}

/** Prints the result of a verb: as JSON for programs, else in words. */
export function printResult(asJson: boolean | undefined, value: unknown, format: () => string): void {
  if (asJson) process.stdout.write(`${json(value, 2)}\n`)
  else printWords(format())
}

/** Prints a fault; with --json also as `{fault}` on standard output, so that a program always finds JSON there. */
export function printFault(fault: Fault, asJson: boolean): void {
  if (asJson) printJsonLine({ fault })
  tell(`error: ${formatFault(fault)}`)
}

/** 2 for a mistake in how the command was called, else 1. */
export function exitStatusOf(error: FaultError): 1 | 2 {
  return error.fault.code.startsWith('usage.') ? 2 : 1
}

/** Columns padded to their widest cell; numbers to the right. An unknown cell is a dash, never 0. */
export function table(names: string[], rows: (string | number | null | undefined)[][]): string {
  const headings = names.map(visible)
  const text = rows.map((row) =>
    row.map((cell) => (cell === null || cell === undefined || cell === '' ? '–' : visible(String(cell)))),
  )
  const widths = headings.map((h, i) => Math.max(h.length, ...text.map((row) => (row[i] ?? '').length)))
  const right = headings.map(
    (_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === 'number' || row[i] == null),
  )
  const line = (cells: string[]) =>
    cells
      .map((cell, i) => (right[i] ? cell.padStart(widths[i] as number) : cell.padEnd(widths[i] as number)))
      .join('  ')
      .trimEnd()
  return [line(headings), ...text.map(line)].join('\n')
}

/** `3 h 5 min`, `12 s` */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const s = Math.round(ms / 1_000)
  if (s < 60) return `${s} s`
  if (s < 3_600) return `${Math.floor(s / 60)} min ${s % 60} s`
  if (s < 86_400) return `${Math.floor(s / 3_600)} h ${Math.floor((s % 3_600) / 60)} min`
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3_600)} h`
}

/** `42 %`; never 100 % before all of it is done. */
export function percent(share: number | null | undefined): string {
  return share === null || share === undefined ? '–' : `${Math.floor(share * 100)} %`
}

/** A moment in this machine's time zone, to the second. */
export function moment(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  const d = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000)
  return d.toISOString().slice(0, 19).replace('T', ' ')
}
