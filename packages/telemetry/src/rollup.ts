import { metrics } from './metric-catalogue'

/** Resolutions in which samples are stored and for how long, finest first. Configurable; these are the defaults. */
export const defaultRetention = [
  { stepSeconds: 1, keepSeconds: 6 * 3_600 },
  { stepSeconds: 10, keepSeconds: 7 * 86_400 },
  { stepSeconds: 60, keepSeconds: 90 * 86_400 },
] as const

export type EncodedSample = { at: number; intervalMs: number; values: readonly (number | null)[] }
export type Rollup = {
  /** Start of the bucket, milliseconds since the epoch. */
  bucketAt: number
  /** How much of the bucket was measured. */
  coveredMs: number
  average: (number | null)[]
  maximum: (number | null)[]
}

/**
 * Rolls samples up into buckets of `stepSeconds`. Averages weigh each sample by the time it covers, so that a late sample
 * counts for the ticks it stands for. A metric nobody knew in a bucket stays null.
 */
export function rollUp(samples: readonly EncodedSample[], stepSeconds: number): Rollup[] {
  const step = stepSeconds * 1_000
  const buckets = new Map<
    number,
    { weight: number[]; sum: number[]; max: (number | null)[]; covered: number }
  >()
  for (const s of samples) {
    const at = Math.floor(s.at / step) * step
    let b = buckets.get(at)
    if (!b) {
      b = {
        weight: new Array(metrics.length).fill(0),
        sum: new Array(metrics.length).fill(0),
        max: new Array(metrics.length).fill(null),
        covered: 0,
      }
      buckets.set(at, b)
    }
    b.covered += s.intervalMs
    for (let i = 0; i < metrics.length; i++) {
      const v = s.values[i]
      if (v === null || v === undefined) continue
      b.weight[i] = (b.weight[i] as number) + s.intervalMs
      b.sum[i] = (b.sum[i] as number) + v * s.intervalMs
      const m = b.max[i] as number | null
      b.max[i] = m === null || v > m ? v : m
    }
  }
  return [...buckets.entries()]
    .sort(([a], [b]) => a - b)
    .map(([bucketAt, b]) => ({
      bucketAt,
      coveredMs: Math.min(b.covered, step),
      average: b.sum.map((s, i) => ((b.weight[i] as number) > 0 ? s / (b.weight[i] as number) : null)),
      maximum: b.max,
    }))
}
