import { metrics } from './metric-catalogue'
import { Weighing } from './resolution'

export type EncodedSample = { at: number; intervalMs: number; values: readonly (number | null)[] }
export type Rollup = {
  /** Start of the bucket, milliseconds since the epoch. */
  bucketAt: number
  /** How much of the bucket was measured. */
  coveredMs: number
  average: (number | null)[]
  maximum: (number | null)[]
}

/** Rolls samples up into buckets of `stepSeconds`, each sample in the bucket in which it was taken. */
export function rollUp(samples: readonly EncodedSample[], stepSeconds: number): Rollup[] {
  const step = stepSeconds * 1_000
  const buckets = new Map<number, Weighing>()
  for (const { at, intervalMs, values } of samples) {
    const bucketAt = Math.floor(at / step) * step
    const bucket = buckets.get(bucketAt) ?? new Weighing(metrics.length)
    buckets.set(bucketAt, bucket)
    bucket.add(values, intervalMs)
  }
  return [...buckets]
    .sort(([a], [b]) => a - b)
    .map(([bucketAt, bucket]) => ({
      bucketAt,
      coveredMs: Math.min(bucket.coveredMs, step),
      average: bucket.average(),
      maximum: bucket.maximum(),
    }))
}
