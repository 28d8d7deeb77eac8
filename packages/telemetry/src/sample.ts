import { z } from 'zod'
import { type MetricName, metrics } from './metric-catalogue'

/** The tick at which agents sample. */
export const SAMPLE_INTERVAL_MS = 1_000
/** How long an agent keeps samples for a client that lost its connection. */
export const RING_MINUTES = 60

export type MetricValues = Partial<Record<MetricName, number | null>>

/**
 * One tick of one instance. `seq` grows by one with every sample of an instance and never restarts; `at` is the moment
 * the tick was taken (milliseconds since the epoch) and `intervalMs` the measured time the rates cover. A missed tick
 * has no sample; the next one covers the longer interval. A metric that is absent or null is not known.
 */
export const Sample = z.object({
  seq: z.number().int().nonnegative(),
  at: z.number(),
  intervalMs: z.number().positive(),
  values: z.record(z.string(), z.number().nullable()),
})
export type Sample = { seq: number; at: number; intervalMs: number; values: MetricValues }

/** Values as an array by catalogue position, for storage. Unknown names are dropped; missing ones are null. */
export function encodeValues(values: MetricValues): (number | null)[] {
  return metrics.map(({ name }) => {
    const value = values[name]
    return typeof value === 'number' && Number.isFinite(value) ? value : null
  })
}

/** Inverse of encodeValues. Shorter arrays (stored before a metric was added) leave the newer metrics out. */
export function decodeValues(array: readonly (number | null)[]): MetricValues {
  const out: MetricValues = {}
  metrics.forEach((m, i) => {
    const value = array[i]
    if (value !== null && value !== undefined) out[m.name] = value
  })
  return out
}
