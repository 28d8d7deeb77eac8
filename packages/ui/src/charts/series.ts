import type { MetricUnit } from '@floe/telemetry'

export type SeriesColor = 1 | 2 | 3 | 4 | 5 | 6

/** One line or area of a chart. `source` and `help` say where its numbers come from; they are shown beside them. */
export type ChartSeries = {
  key: string
  label: string
  color: SeriesColor
  kind?: 'line' | 'area'
  dashed?: boolean
  source?: string
  help?: string
  /** Key of the largest value within the time that a row stands for: shaded from the line up to it. Not in a stack. */
  maximumKey?: string
  /** Its newest value is of the past, whatever the rows hold: nobody can know it now. */
  ended?: boolean
}

/**
 * One moment of a chart: `at` in milliseconds and the value of each series by key. A null ends the line: where nobody
 * measured, nothing is drawn.
 */
export type ChartRow = { at: number } & Record<string, number | null>

export type ChartUnit = MetricUnit

/** Position of the row nearest in time, or -1. Rows are in order of time. */
export function nearestRow(rows: readonly ChartRow[], at: number): number {
  if (rows.length === 0) return -1
  let low = 0
  let high = rows.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((rows[middle] as ChartRow).at < at) low = middle + 1
    else high = middle
  }
  const before = low > 0 ? (rows[low - 1] as ChartRow) : null
  return before && at - before.at < (rows[low] as ChartRow).at - at ? low - 1 : low
}

/** The last value known of a series, with its time; null when there is none. */
export function lastValue(rows: readonly ChartRow[], key: string): { at: number; value: number } | null {
  for (let i = rows.length - 1; i >= 0; i--) {
    const row = rows[i] as ChartRow
    const value = row[key]
    if (typeof value === 'number') return { at: row.at, value }
  }
  return null
}

/**
 * The newest value of a series as long as it is one of the present: not older than `withinMs` before the newest row. Null
 * where it is not known any more.
 */
export function presentValue(
  rows: readonly ChartRow[],
  key: string,
  withinMs: number,
): { at: number; value: number } | null {
  const newest = lastValue(rows, key)
  return newest && newest.at >= (rows.at(-1) as ChartRow).at - withinMs ? newest : null
}

/** Greatest and least of what is drawn between two times; stacked series count together. Null when nothing is drawn. */
export function extent(
  rows: readonly ChartRow[],
  keys: readonly string[],
  stacked: boolean,
  from: number,
  to: number,
): { min: number; max: number } | null {
  let min = Number.POSITIVE_INFINITY
  let max = Number.NEGATIVE_INFINITY
  for (const row of rows) {
    if (row.at < from || row.at > to) continue
    let sum = 0
    let any = false
    for (const key of keys) {
      const value = row[key]
      if (typeof value !== 'number') continue
      any = true
      sum += value
      if (!stacked) {
        if (value < min) min = value
        if (value > max) max = value
      }
    }
    if (stacked && any) {
      if (sum < min) min = sum
      if (sum > max) max = sum
    }
  }
  return min <= max ? { min, max } : null
}
