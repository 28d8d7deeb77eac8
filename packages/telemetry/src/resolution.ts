import { SAMPLE_INTERVAL_MS } from './sample'

/** Resolutions in which samples are stored, in seconds, finest first: single samples, then roll-ups. */
export const storedSteps = [1, 10, 60] as const
export type StoredStep = (typeof storedSteps)[number]

/** Seconds that one point of a history may stand for. */
const pointSteps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400]

/** The length of a point, and the stored resolution that it is read from. */
export type Resolution = { stepSeconds: number; sourceSeconds: StoredStep }

/** The shortest step in which a range has at most `maxPoints` points. */
export function stepFor(rangeMs: number, maxPoints: number): number {
  const seconds = Math.max(1, rangeMs / 1_000)
  return pointSteps.find((step) => seconds / step <= maxPoints) ?? Math.ceil(seconds / maxPoints)
}

/**
 * What answers a range: the shortest step that gives at most `maxPoints`, from the coarsest stored resolution that divides
 * it and still has the start of the range; where none has, the finest that does, at one of its own buckets a point or more.
 */
export function chooseResolution(
  range: { from: number; to: number; maxPoints: number; now: number },
  retention: readonly { stepSeconds: StoredStep; keepSeconds: number }[],
): Resolution {
  const wanted = stepFor(range.to - range.from, range.maxPoints)
  const covers = (source: StoredStep) => {
    const kept = retention.find((r) => r.stepSeconds === source)
    return kept !== undefined && range.now - range.from <= kept.keepSeconds * 1_000
  }
  const fitting = storedSteps.findLast((step) => step <= wanted && wanted % step === 0 && covers(step))
  if (fitting) return { stepSeconds: wanted, sourceSeconds: fitting }
  const source = storedSteps.find(covers) ?? 60
  return { stepSeconds: Math.max(source, Math.ceil(wanted / source) * source), sourceSeconds: source }
}

/** Without a sample for longer there is a gap, even where the counters of the next one cover it all. */
const LONGEST_BRIDGE_MS = 10_000

/**
 * True when a line may be drawn from `a` to `b`, whose measured time begins at `from`: less than a tick and a half lies
 * between them that nobody measured (half a bucket of a roll-up, which says how much of it was measured but not when), and
 * they are at most 10 s, or two points, apart.
 */
export function joins(
  a: { at: number },
  b: { from: number; at: number },
  { stepSeconds, sourceSeconds }: Resolution = { stepSeconds: 1, sourceSeconds: 1 },
): boolean {
  const unmeasuredMs = b.from - a.at
  const bearableMs = Math.max(SAMPLE_INTERVAL_MS * 1.5, sourceSeconds > 1 ? sourceSeconds * 500 : 0)
  return unmeasuredMs <= bearableMs && b.at - a.at <= Math.max(LONGEST_BRIDGE_MS, stepSeconds * 2 * 1_000)
}

/** joins() for two samples, of which the later one covers `intervalMs`. */
export const isContinuous = (
  a: { at: number },
  b: { at: number; intervalMs: number },
  resolution?: Resolution,
): boolean => joins(a, { from: b.at - b.intervalMs, at: b.at }, resolution)

type Values = readonly (number | null | undefined)[]

/**
 * Values by position, averaged. Each counts for the time it covers, so that a late sample counts for the ticks it stands
 * for. What nobody knew stays null.
 */
export class Weighing {
  readonly #weight: number[]
  readonly #sum: number[]
  readonly #maximum: (number | null)[]
  /** How much time was measured. */
  coveredMs = 0

  constructor(width: number) {
    this.#weight = new Array(width).fill(0)
    this.#sum = new Array(width).fill(0)
    this.#maximum = new Array(width).fill(null)
  }

  add(values: Values, coveredMs: number, maximum: Values = values): void {
    this.coveredMs += coveredMs
    for (let i = 0; i < this.#sum.length; i++) {
      const value = values[i]
      if (value === null || value === undefined) continue
      this.#weight[i] = (this.#weight[i] as number) + coveredMs
      this.#sum[i] = (this.#sum[i] as number) + value * coveredMs
      const most = maximum[i] ?? value
      const before = this.#maximum[i] as number | null
      this.#maximum[i] = before === null || most > before ? most : before
    }
  }

  average(): (number | null)[] {
    return this.#sum.map((sum, i) => {
      const weight = this.#weight[i] as number
      return weight > 0 ? sum / weight : null
    })
  }

  maximum(): (number | null)[] {
    return this.#maximum.slice()
  }
}
