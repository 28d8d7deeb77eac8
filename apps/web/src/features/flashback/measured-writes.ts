import type { WritesMeasured } from '@floe/domain'
import type { MetricName } from '@floe/telemetry'

/** What a forecast of the flashback log is made from. */
export const writesMetrics: MetricName[] = ['wal_fpi', 'wal_fpi_omitted_bytes', 'wal_bytes', 'disk_free']

/** What was written in less time foretells nothing. */
export const LEAST_MEASURED_MS = 300_000

type Point = { at: number; intervalMs: number; average: readonly (number | null)[] }
type History = { metrics: readonly MetricName[]; points: readonly Point[] }

/** What was measured over a history, and over how much of it; null where nothing was. */
export function measuredWrites({
  metrics,
  points,
}: History): (WritesMeasured & { measuredMs: number }) | null {
  const averageOf = (point: Point, name: MetricName) => point.average[metrics.indexOf(name)] ?? null
  let measuredMs = 0
  let images = 0
  let omitted = 0
  let wal = 0
  for (const point of points) {
    const [written, all] = [averageOf(point, 'wal_fpi'), averageOf(point, 'wal_bytes')]
    if (written === null || all === null) continue
    measuredMs += point.intervalMs
    images += written * point.intervalMs
    // an engine that omits none does not report any
    omitted += (averageOf(point, 'wal_fpi_omitted_bytes') ?? 0) * point.intervalMs
    wal += all * point.intervalMs
  }
  if (measuredMs === 0) return null
  return {
    imagesPerSecond: images / measuredMs,
    omittedBytesPerSecond: omitted / measuredMs,
    walBytesPerSecond: wal / measuredMs,
    measuredMs,
  }
}

/** The newest value of a metric in a history; null where there is none. */
export function newestOf({ metrics, points }: History, name: MetricName): number | null {
  for (const point of [...points].reverse()) {
    const value = point.average[metrics.indexOf(name)] ?? null
    if (value !== null) return value
  }
  return null
}
