import { formatBytes } from '@floe/domain'
import type { ChartUnit } from './series'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

function plain(value: number): string {
  const size = Math.abs(value)
  if (size >= 100 || Number.isInteger(value)) return whole.format(value)
  if (size >= 10) return value.toFixed(1)
  if (size >= 1) return value.toFixed(2)
  return size === 0 ? '0' : size < 0.001 ? value.toExponential(1) : value.toPrecision(2)
}

/** A value with its unit, for people: `1,234 /s`, `4.2 MB/s`, `99.3 %`. Unknown is a dash, never 0. */
export function formatValue(value: number | null | undefined, unit: ChartUnit): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–'
  switch (unit) {
    case 'B':
      return formatBytes(value)
    case 'B/s':
      return `${formatBytes(value)}/s`
    case 'ratio':
      return `${value === 1 ? '100' : (value * 100).toFixed(value > 0.99 ? 2 : 1)} %`
    case 'ms':
      return Math.abs(value) >= 10_000 ? `${plain(value / 1_000)} s` : `${plain(value)} ms`
    case 's':
      return `${plain(value)} s`
    case '1/s':
      return `${plain(value)} /s`
    case 'cores':
      return `${plain(value)} ${value === 1 ? 'core' : 'cores'}`
    default:
      return plain(value)
  }
}

/** A value on the axis: short, and without a fraction that the ticks do not need. */
export function formatTick(value: number, unit: ChartUnit): string {
  if (unit === 'ratio') return `${Math.round(value * 1_000) / 10} %`
  if (unit === 'B') return formatBytes(value)
  if (unit === 'B/s') return value === 0 ? '0' : `${formatBytes(value)}/s`
  if (unit === '1/s' || unit === '1') {
    if (value >= 1_000_000) return `${Number((value / 1_000_000).toPrecision(3))} M`
    if (value >= 10_000) return `${Number((value / 1_000).toPrecision(4))} k`
    return whole.format(value) === '0' && value > 0 ? plain(value) : Number(value.toPrecision(4)).toString()
  }
  if (unit === 'ms' && value >= 10_000) return `${Number((value / 1_000).toPrecision(3))} s`
  return `${Number(value.toPrecision(3))} ${unit === 'cores' ? '' : unit}`.trim()
}

/** The unit as a caption of the axis. */
export const unitWords: Record<ChartUnit, string> = {
  '1/s': 'per second',
  'B/s': 'bytes per second',
  B: 'bytes',
  ms: 'milliseconds',
  s: 'seconds',
  '1': 'count',
  ratio: 'percent',
  cores: 'cores',
}

/** Steps that people count in: 1, 2, 5 and their tens; powers of two for bytes. */
function niceStep(rough: number, unit: ChartUnit): number {
  if (unit === 'B' || unit === 'B/s') {
    if (rough <= 1) return 1
    const base = 1024 ** Math.floor(Math.log(rough) / Math.log(1024))
    for (const f of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]) if (f * base >= rough) return f * base
    return 1024 * base
  }
  const base = 10 ** Math.floor(Math.log10(rough))
  for (const f of [1, 2, 2.5, 5, 10]) {
    // counts have no fractions
    if (unit === '1' && f * base < 1) continue
    if (f * base >= rough * 0.999) return f * base
  }
  return 10 * base
}

/** Ticks of the value axis from `min` (rounded down) to just above `max`, about `count` of them. */
export function valueTicks(min: number, max: number, unit: ChartUnit, count = 4): number[] {
  if (unit === 'ratio' && min >= 0 && max <= 1) {
    const low = Math.min(min, 0.999)
    const step = niceStep((1 - low) / count, unit)
    const from = Math.max(0, Math.floor(low / step + 1e-9) * step)
    const ticks: number[] = []
    for (let v = from; v < 1 + step / 2; v += step) ticks.push(Math.min(1, Number(v.toPrecision(6))))
    return [...new Set(ticks)]
  }
  const top = max > min ? max : min + (min === 0 ? 1 : Math.abs(min) * 0.1)
  const step = niceStep((top - min) / count, unit)
  const from = Math.floor(min / step) * step
  const ticks: number[] = []
  for (let v = from; ; v += step) {
    ticks.push(Number(v.toPrecision(12)))
    if (v >= top || ticks.length > 20) return ticks
  }
}

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const timeSteps = [
  second,
  2 * second,
  5 * second,
  10 * second,
  15 * second,
  30 * second,
  minute,
  2 * minute,
  5 * minute,
  10 * minute,
  15 * minute,
  30 * minute,
  hour,
  2 * hour,
  3 * hour,
  6 * hour,
  12 * hour,
  day,
  2 * day,
  5 * day,
  7 * day,
]

/** Ticks of the time axis on round local times, at most `count`. */
export function timeTicks(
  from: number,
  to: number,
  count: number,
  zoneOffsetMs = -new Date(to).getTimezoneOffset() * minute,
): number[] {
  const step = timeSteps.find((s) => (to - from) / s <= Math.max(1, count)) ?? 14 * day
  const ticks: number[] = []
  for (let v = Math.ceil((from + zoneOffsetMs) / step) * step - zoneOffsetMs; v <= to; v += step)
    ticks.push(v)
  return ticks
}

/** A time on the axis: as much of it as the span needs. */
export function formatTimeTick(at: number, span: number): string {
  const d = new Date(at)
  const two = (n: number) => String(n).padStart(2, '0')
  const clock = `${two(d.getHours())}:${two(d.getMinutes())}`
  if (span <= 10 * minute) return `${clock}:${two(d.getSeconds())}`
  if (span <= day) return clock
  const date = `${two(d.getMonth() + 1)}-${two(d.getDate())}`
  return span <= 4 * day ? `${date} ${clock}` : date
}
