/** A stretch of time drawn behind a chart: a checkpoint's write or sync phase. `label` is what a reader of it is told. */
export type ChartBand = { key: string; phase: 'write' | 'sync'; from: number; to: number; label: string }

/**
 * What of the bands falls into a window. A phase shorter than a pixel is widened to one and a half, so that a short sync
 * stays visible; it never reaches beyond the window.
 */
export function visibleBands(
  bands: readonly ChartBand[],
  from: number,
  to: number,
  plotWidth: number,
): ChartBand[] {
  const least = plotWidth > 0 ? ((to - from) / plotWidth) * 1.5 : 0
  const out: ChartBand[] = []
  for (const band of bands) {
    const end = Math.max(band.to, band.from + least)
    if (end < from || band.from > to) continue
    out.push({ ...band, from: Math.max(from, band.from), to: Math.min(to, end) })
  }
  return out
}

/** The bands that lie at a moment, with a little room for those that are thinner than a finger. */
export function bandsAt(bands: readonly ChartBand[], at: number, roomMs: number): ChartBand[] {
  return bands.filter((band) => at >= band.from - roomMs && at <= band.to + roomMs)
}
