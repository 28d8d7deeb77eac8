import { isContinuous, type MetricName } from '@floe/telemetry'

/** What one point of a chart knows: it covers [at - intervalMs, at]. */
export type TimelinePoint = {
  at: number
  intervalMs: number
  values: Partial<Record<MetricName, number | null>>
  /** Whether nobody measured between the point before and this one, where that is known from the stored samples. */
  gapBefore?: boolean | undefined
}
/** A row as charts take it, by metric name and by the names of derived series. */
export type TimelineRow = { at: number } & Record<string, number | null>
export type Derive = (values: TimelinePoint['values']) => Record<string, number | null>

/** Most points that a chart draws per series. */
export const MAX_POINTS = 600

const bucketSeconds = [1, 2, 3, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200]

/** Width of the buckets in which a span has at most MAX_POINTS points; 1 s is no bucketing. */
export function bucketMsFor(spanMs: number): number {
  const seconds = bucketSeconds.find((s) => spanMs / 1_000 / s <= MAX_POINTS) ?? 14_400
  return seconds * 1_000
}

/**
 * True when a line may be drawn between two points: the later one's interval reaches back to the earlier. For single
 * samples that is isContinuous(); points that were rolled up to `bucketMs` may be a bucket and a half apart and must
 * cover at least half of it.
 */
export function joins(
  a: Pick<TimelinePoint, 'at'>,
  b: Pick<TimelinePoint, 'at' | 'intervalMs'>,
  bucketMs: number,
): boolean {
  if (bucketMs <= 1_000) return isContinuous(a, b)
  const hole = b.at - a.at
  return hole <= Math.max(10_000, bucketMs * 2) && b.intervalMs >= Math.min(hole, bucketMs) * 0.5
}

type Bucket = {
  key: number
  at: number
  intervalMs: number
  weight: Map<string, number>
  sum: Map<string, number>
}

/**
 * Turns points, given in order of time, into rows for charts: averages them in buckets aligned to the clock (so that a
 * moving window does not make old points dance), puts a row of nulls where nobody measured, and forgets what is older
 * than the window. Averages weigh each point by the time it covers.
 */
export class Timeline {
  private readonly done: TimelineRow[] = []
  private open: Bucket | null = null
  private last: { at: number; intervalMs: number } | null = null
  private lastRow: TimelineRow | null = null

  constructor(
    readonly bucketMs: number,
    private readonly keys: readonly string[],
    private readonly derive: Derive = () => ({}),
  ) {}

  /** Time of the newest point, or null. */
  get newestAt(): number | null {
    return this.last?.at ?? null
  }

  add(point: TimelinePoint) {
    if (this.last && point.at <= this.last.at) return
    if (this.last && (point.gapBefore ?? !joins(this.last, point, this.bucketMs))) {
      this.close()
      this.done.push(this.nothing((this.last.at + point.at) / 2))
    }
    this.last = { at: point.at, intervalMs: point.intervalMs }
    if (this.bucketMs <= 1_000) {
      this.done.push(this.row(point.at, point.values))
      return
    }
    const key = Math.ceil(point.at / this.bucketMs)
    if (this.open && this.open.key !== key) this.close()
    this.open ??= { key, at: point.at, intervalMs: 0, weight: new Map(), sum: new Map() }
    const bucket = this.open
    bucket.at = point.at
    bucket.intervalMs += point.intervalMs
    for (const [name, value] of Object.entries(point.values)) {
      if (typeof value !== 'number') continue
      bucket.weight.set(name, (bucket.weight.get(name) ?? 0) + point.intervalMs)
      bucket.sum.set(name, (bucket.sum.get(name) ?? 0) + value * point.intervalMs)
    }
    this.lastRow = null
  }

  /** Forgets what lies before a moment, save the last row before it, so that lines reach the edge. */
  dropBefore(at: number) {
    let n = 0
    while (n + 1 < this.done.length && (this.done[n + 1] as TimelineRow).at < at) n++
    if (n > 0) this.done.splice(0, n)
  }

  /** All rows, the one that is still filling included; a new array every time. */
  rows(): TimelineRow[] {
    if (!this.open) return this.done.slice()
    this.lastRow ??= this.average(this.open)
    return [...this.done, this.lastRow]
  }

  private close() {
    if (this.open) this.done.push(this.average(this.open))
    this.open = null
    this.lastRow = null
  }

  private average(bucket: Bucket): TimelineRow {
    const values: Record<string, number> = {}
    for (const [name, weight] of bucket.weight)
      if (weight > 0) values[name] = (bucket.sum.get(name) as number) / weight
    return this.row(bucket.at, values)
  }

  private row(at: number, values: TimelinePoint['values']): TimelineRow {
    const row: TimelineRow = { at }
    const known = values as Record<string, number | null | undefined>
    const derived = this.derive(values)
    for (const key of this.keys) row[key] = derived[key] ?? known[key] ?? null
    return row
  }

  private nothing(at: number): TimelineRow {
    const row: TimelineRow = { at }
    for (const key of this.keys) row[key] = null
    return row
  }
}
