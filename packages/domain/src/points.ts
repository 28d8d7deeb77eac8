/** A value at a moment (ms since the epoch); null where it is not known. */
export type Point = { at: number; value: number | null }

/**
 * Points as one text: the first moment, then `offset:value` for each, e.g. `1790000000000 0:12.5 1000:`. A list of a
 * thousand instances with a minute of points each is ten times as cheap to send this way. Seven digits: for a chart.
 */
export function encodePoints(points: readonly Point[]): string {
  const first = points[0]
  if (!first) return ''
  const text = ({ at, value }: Point) =>
    `${at - first.at}:${value === null ? '' : Number(value.toPrecision(7))}`
  return `${first.at} ${points.map(text).join(' ')}`
}

/** The points of such a text, in the same order. */
export function decodePoints(text: string): Point[] {
  if (text === '') return []
  const [first, ...rest] = text.split(' ')
  return rest.map((point) => {
    const colon = point.indexOf(':')
    const value = point.slice(colon + 1)
    return { at: Number(first) + Number(point.slice(0, colon)), value: value === '' ? null : Number(value) }
  })
}
