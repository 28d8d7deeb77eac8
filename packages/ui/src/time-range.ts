import { formatTime } from './age'

/** What a page shows: the last so many milliseconds up to now (moving along), or from one moment to another. */
export type TimeRange = { kind: 'last'; ms: number } | { kind: 'between'; from: number; to: number }

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

export const timeRangePresets = [
  { word: '5m', label: 'Last 5 minutes', ms: 5 * minute },
  { word: '15m', label: 'Last 15 minutes', ms: 15 * minute },
  { word: '30m', label: 'Last 30 minutes', ms: 30 * minute },
  { word: '1h', label: 'Last hour', ms: hour },
  { word: '3h', label: 'Last 3 hours', ms: 3 * hour },
  { word: '6h', label: 'Last 6 hours', ms: 6 * hour },
  { word: '12h', label: 'Last 12 hours', ms: 12 * hour },
  { word: '24h', label: 'Last 24 hours', ms: day },
  { word: '2d', label: 'Last 2 days', ms: 2 * day },
  { word: '7d', label: 'Last 7 days', ms: 7 * day },
  { word: '30d', label: 'Last 30 days', ms: 30 * day },
] as const

export const defaultTimeRange: TimeRange = { kind: 'last', ms: 5 * minute }

const units: Record<string, number> = { s: 1_000, m: minute, h: hour, d: day }
const longest = 90 * day
const shortest = 2_000

/** A duration as people and addresses write it: `90s`, `5m`, `1h`, `30d`; null when it is none or out of bounds. */
export function parseSpan(text: string): number | null {
  const match = /^(\d{1,6})\s*([smhd])$/.exec(text.trim())
  if (!match) return null
  const ms = Number(match[1]) * (units[match[2] as string] as number)
  return ms >= shortest && ms <= longest ? ms : null
}

export function formatSpan(ms: number): string {
  // 24h stays 24h; people read days from the second on
  for (const [unit, size] of [
    ['d', day],
    ['h', hour],
    ['m', minute],
  ] as const)
    if (ms % size === 0 && (unit !== 'd' || ms > day)) return `${ms / size}${unit}`
  return `${Math.round(ms / 1_000)}s`
}

/**
 * The range that an address asks for: `range=15m`, or `from=…&to=…` in milliseconds or RFC 3339. What cannot be read is
 * the default, so that a mistyped address still shows something.
 */
export function parseTimeRange(params: { get(name: string): string | null }): TimeRange {
  const from = parseMoment(params.get('from'))
  const to = parseMoment(params.get('to'))
  if (from !== null && to !== null && to - from >= shortest && to - from <= longest)
    return { kind: 'between', from, to }
  const range = params.get('range')
  const ms = range === null ? null : parseSpan(range)
  return ms === null ? defaultTimeRange : { kind: 'last', ms }
}

/** Writes a range into an address's parameters; the default leaves no trace. */
export function writeTimeRange(params: URLSearchParams, range: TimeRange): URLSearchParams {
  const next = new URLSearchParams(params)
  next.delete('range')
  next.delete('from')
  next.delete('to')
  if (range.kind === 'between') {
    next.set('from', String(Math.round(range.from)))
    next.set('to', String(Math.round(range.to)))
  } else if (defaultTimeRange.kind !== 'last' || range.ms !== defaultTimeRange.ms)
    next.set('range', formatSpan(range.ms))
  return next
}

export function parseMoment(text: string | null): number | null {
  if (text === null || text === '') return null
  if (/^\d{12,14}$/.test(text)) return Number(text)
  const at = Date.parse(text)
  return Number.isFinite(at) ? at : null
}

/** The range's two ends, given the time now. */
export function timeRangeEnds(range: TimeRange, now: number): { from: number; to: number } {
  return range.kind === 'last' ? { from: now - range.ms, to: now } : { from: range.from, to: range.to }
}

export function timeRangeLabel(range: TimeRange): string {
  if (range.kind === 'last')
    return timeRangePresets.find((p) => p.ms === range.ms)?.label ?? `Last ${formatSpan(range.ms)}`
  const day = (at: number) => formatTime(at, false).slice(0, 10)
  const clock = (at: number) => formatTime(at, false).slice(11)
  const to = day(range.to) === day(range.from) ? clock(range.to) : formatTime(range.to, false)
  return `${formatTime(range.from, false)} – ${to}`
}
