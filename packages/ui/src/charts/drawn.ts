import { type ChartRow, type ChartSeries, extent } from './series'

/** Key under which a row holds a series' value where that stands alone, with nothing measured on either side. */
export const dotKey = (key: string) => `${key} alone`

const isArea = (s: ChartSeries, stacked: boolean) => s.kind === 'area' || (stacked && s.kind !== 'line')

/**
 * The rows as they are drawn, and the series that have a point without neighbours: a line through one point cannot be
 * seen, so such points are drawn as dots. In a stack, a layer whose own height is 0 is not drawn, because its stroke would
 * cover the layer below it; where the whole stack is 0 its first layer is, so that a measured 0 can be distinguished from nothing.
 */
export function drawnRows(
  series: readonly ChartSeries[],
  rows: readonly ChartRow[],
  stacked: boolean,
): { rows: readonly ChartRow[]; dots: ReadonlySet<string> } {
  const dots = new Set<string>()
  const layers = stacked ? series.filter((s) => isArea(s, true)).map((s) => s.key) : []
  const changed = new Map<number, ChartRow>()
  const change = (i: number, key: string, value: number | null) => {
    const row = changed.get(i) ?? { ...(rows[i] as ChartRow) }
    row[key] = value
    changed.set(i, row)
  }
  const valueAt = (i: number, key: string) => {
    const value = rows[i]?.[key]
    return typeof value === 'number' ? value : null
  }
  const isFlat = (i: number, key: string) => (valueAt(i, key) ?? 0) === 0
  for (const { key } of series) {
    const layer = layers.indexOf(key)
    for (let i = 0; i < rows.length; i++) {
      const value = valueAt(i, key)
      if (value === null) continue
      if (valueAt(i - 1, key) === null && valueAt(i + 1, key) === null) {
        if (value === 0 && layer > 0) continue
        dots.add(key)
        // a dot of a stacked layer lies where the layer's upper edge would
        const below = layers.slice(0, Math.max(0, layer))
        change(
          i,
          dotKey(key),
          below.reduce((sum, other) => sum + (valueAt(i, other) ?? 0), value),
        )
      }
      if (layer < 0 || value !== 0 || !isFlat(i - 1, key) || !isFlat(i + 1, key)) continue
      if (layer === 0 && layers.every((other) => isFlat(i, other))) continue
      change(i, key, null)
    }
  }
  return changed.size === 0 ? { rows, dots } : { rows: rows.map((row, i) => changed.get(i) ?? row), dots }
}

/** In a stacked chart the areas count together, and a line stands for itself. */
export function drawnExtent(
  series: readonly ChartSeries[],
  rows: readonly ChartRow[],
  stacked: boolean,
  from: number,
  to: number,
): { min: number; max: number } | null {
  const keysOf = (lines: boolean) => series.filter((s) => (s.kind === 'line') === lines).map((s) => s.key)
  if (!stacked) {
    const maxima = series.flatMap((s) => s.maximumKey ?? [])
    return extent(rows, [...keysOf(true), ...keysOf(false), ...maxima], false, from, to)
  }
  const areas = extent(rows, keysOf(false), true, from, to)
  const lines = extent(rows, keysOf(true), false, from, to)
  return areas && lines
    ? { min: Math.min(areas.min, lines.min), max: Math.max(areas.max, lines.max) }
    : (areas ?? lines)
}

/** Those of the series that have a largest value in any row: rows of single samples have none. */
export const withMaximum = (series: readonly ChartSeries[], rows: readonly ChartRow[]) =>
  series.filter((s): s is ChartSeries & { maximumKey: string } => {
    const { maximumKey } = s
    return maximumKey !== undefined && rows.some((row) => typeof row[maximumKey] === 'number')
  })

/** What is shaded of a row: from the value to the largest one; null where either is not known. */
export const maximumSpan =
  (key: string, maximumKey: string) =>
  (row: ChartRow): [number, number] | null => {
    const [value, most] = [row[key], row[maximumKey]]
    return typeof value === 'number' && typeof most === 'number' ? [value, most] : null
  }

/** From so many values on one can be known to be an exception, and this much greater than the rest it has to be. */
const leastValues = 10
const mostAbove = 2
const timesTheRest = 5

/**
 * One or two values that are far above all others, which would press the rest to the floor: what the axis should end at
 * without them, and which they are. Null where there are none; a burst of several values is no exception.
 */
export function valuesAbove(
  series: readonly ChartSeries[],
  rows: readonly ChartRow[],
  from: number,
  to: number,
): { top: number; above: { at: number; value: number }[] } | null {
  const values: { at: number; value: number }[] = []
  for (const row of rows) {
    if (row.at < from || row.at > to) continue
    for (const { key } of series) {
      const value = row[key]
      if (typeof value === 'number') values.push({ at: row.at, value })
    }
  }
  if (values.length < leastValues) return null
  values.sort((a, b) => b.value - a.value)
  for (let count = mostAbove; count > 0; count--) {
    const rest = (values[count] as { value: number }).value
    const least = (values[count - 1] as { value: number }).value
    if (rest > 0 && least > rest * timesTheRest) return { top: rest, above: values.slice(0, count) }
  }
  return null
}
