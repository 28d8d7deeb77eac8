import { isContinuous, type MetricName, type MetricValues, Weighing } from '@floe/telemetry'

/** A row as charts take it, by metric name and by the names of derived series. */
export type TimelineRow = { at: number } & Record<string, number | null>
export type Derive = (values: MetricValues) => Record<string, number | null>

/** A point of telemetry.history. */
export type StoredPoint = {
  at: number
  intervalMs: number
  gapBefore: boolean
  average: readonly (number | null)[]
  maximum: readonly (number | null)[] | null
}
/** A sample as the stream sends it. */
export type LivePoint = { at: number; intervalMs: number; values: MetricValues }

/** Most points that a chart draws per series. */
export const MAX_POINTS = 600

/** Key of the rows' largest value of a metric within the time of a row; null where a row is one sample. */
export const maximumKey = (name: MetricName) => `${name} maximum`

/** What rows are made of: the order of a history's values is that of `metrics` and `maximumOf`. */
export type RowShape = {
  metrics: readonly MetricName[]
  maximumOf?: readonly MetricName[]
  derive?: Derive
}

/**
 * Turns points, given in order of time, into rows for charts: first the stored ones, then samples as they come. Samples
 * are averaged in steps of the stored points, aligned to the clock, so that a moving window does not make old points
 * dance; a row of nulls stands where nobody measured; what is older than the window is forgotten.
 */
export class Timeline {
  readonly #stepMs: number
  readonly #shape: Required<RowShape>
  /** Where in `metrics` those stand of which the maximum is shown. */
  readonly #maximumAt: readonly number[]
  readonly #done: TimelineRow[] = []
  #open: { step: number; at: number; weighing: Weighing } | null = null
  #openRow: TimelineRow | null = null
  #newestAt: number | null = null

  constructor(
    readonly stepSeconds: number,
    { metrics, maximumOf = [], derive = () => ({}) }: RowShape,
  ) {
    this.#stepMs = stepSeconds * 1_000
    this.#shape = { metrics, maximumOf, derive }
    this.#maximumAt = maximumOf.map((name) => metrics.indexOf(name))
  }

  /** Time of the newest point, or null. */
  get newestAt(): number | null {
    return this.#newestAt
  }

  /** Adds a point of the history, which says itself whether there is a gap before it. */
  addStored({ at, intervalMs, gapBefore, average, maximum }: StoredPoint): void {
    if (!this.#follows(at, gapBefore)) return
    // a point that ends with a step belongs to the one before
    this.#add(Math.ceil(at / this.#stepMs), at, intervalMs, average, maximum)
  }

  /** Adds a sample behind the history. */
  addLive({ at, intervalMs, values }: LivePoint): void {
    const resolution = { stepSeconds: this.stepSeconds, sourceSeconds: 1 } as const
    const gap =
      this.#newestAt !== null && !isContinuous({ at: this.#newestAt }, { at, intervalMs }, resolution)
    if (!this.#follows(at, gap)) return
    const known = this.#shape.metrics.map((name) => values[name])
    this.#add(Math.floor(at / this.#stepMs) + 1, at, intervalMs, known, null)
  }

  /** Forgets what lies before a moment, save the last row before it, so that lines reach the edge. */
  dropBefore(at: number): void {
    let n = 0
    while (n + 1 < this.#done.length && (this.#done[n + 1] as TimelineRow).at < at) n++
    if (n > 0) this.#done.splice(0, n)
  }

  /** All rows, the one that is still filling included; a new array every time. */
  rows(): TimelineRow[] {
    if (!this.#open) return this.#done.slice()
    this.#openRow ??= this.#averaged(this.#open)
    return [...this.#done, this.#openRow]
  }

  /** Whether a point is newer than all others; ends the lines before a gap. */
  #follows(at: number, gapBefore: boolean): boolean {
    if (this.#newestAt !== null && at <= this.#newestAt) return false
    if (this.#newestAt !== null && gapBefore) {
      this.#close()
      this.#done.push(this.#row((this.#newestAt + at) / 2, [], null))
    }
    this.#newestAt = at
    return true
  }

  #add(
    step: number,
    at: number,
    intervalMs: number,
    values: readonly (number | null | undefined)[],
    maximum: readonly (number | null)[] | null,
  ): void {
    if (this.stepSeconds <= 1) {
      this.#done.push(this.#row(at, values, null))
      return
    }
    if (this.#open?.step !== step) this.#close()
    this.#open ??= { step, at, weighing: new Weighing(this.#shape.metrics.length) }
    const ofAll: (number | null | undefined)[] = []
    if (maximum) for (const [i, position] of this.#maximumAt.entries()) ofAll[position] = maximum[i]
    this.#open.at = at
    this.#open.weighing.add(values, intervalMs, maximum ? ofAll : values)
    this.#openRow = null
  }

  #close(): void {
    if (this.#open) this.#done.push(this.#averaged(this.#open))
    this.#open = null
    this.#openRow = null
  }

  #averaged({ at, weighing }: { at: number; weighing: Weighing }): TimelineRow {
    return this.#row(at, weighing.average(), weighing.maximum())
  }

  #row(
    at: number,
    values: readonly (number | null | undefined)[],
    maximum: readonly (number | null)[] | null,
  ): TimelineRow {
    const { metrics, maximumOf, derive } = this.#shape
    const named: TimelineRow = { at }
    for (const [i, name] of metrics.entries()) named[name] = values[i] ?? null
    for (const [i, name] of maximumOf.entries())
      named[maximumKey(name)] = maximum?.[this.#maximumAt[i] as number] ?? null
    return Object.assign(named, derive(named as MetricValues))
  }
}
