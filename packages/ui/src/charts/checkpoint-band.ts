/** A stretch of time drawn behind a chart: a checkpoint's write or sync phase, or a stall. `label` is what a reader sees. */
export type ChartBand = {
  key: string
  phase: 'write' | 'sync' | 'stall'
  from: number
  to: number
  label: string
}

/** A phase shorter than this many pixels is widened to it. */
const leastPixels = 1.5

/**
 * What of the bands falls into a window. A short phase is widened so that it stays visible, but never to more than a
 * quarter of the way to the next one of its kind: where many checkpoints lie close together they must not look like one.
 * Nothing reaches beyond the window.
 */
export function visibleBands(
  bands: readonly ChartBand[],
  from: number,
  to: number,
  plotWidth: number,
): ChartBand[] {
  const least = plotWidth > 0 ? ((to - from) / plotWidth) * leastPixels : 0
  const next = {
    write: Number.POSITIVE_INFINITY,
    sync: Number.POSITIVE_INFINITY,
    stall: Number.POSITIVE_INFINITY,
  }
  const out: ChartBand[] = []
  for (const band of [...bands].sort((a, b) => b.from - a.from)) {
    const room = (next[band.phase] - band.from) / 4
    next[band.phase] = band.from
    const end = Math.max(band.to, band.from + Math.min(least, room))
    if (end < from || band.from > to) continue
    out.push({ ...band, from: Math.max(from, band.from), to: Math.min(to, end) })
  }
  return out.reverse()
}

/** The bands that lie at a moment, with a little room for those that are thinner than a finger. */
export function bandsAt(bands: readonly ChartBand[], at: number, roomMs: number): ChartBand[] {
  return bands.filter((band) => at >= band.from - roomMs && at <= band.to + roomMs)
}
