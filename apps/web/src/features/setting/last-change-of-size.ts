import type { MetricName } from '@floe/telemetry'
import type { TelemetryHistory } from '@/server/api'

/** What a bulk size decides the size of. */
export type RequestKind = { request: string; bytes: MetricName; requests: MetricName }

const kinds = {
  reads: { request: 'read request', bytes: 'io_read_bytes', requests: 'io_reads' },
  writes: { request: 'write request', bytes: 'io_write_bytes', requests: 'io_writes' },
  extensions: { request: 'extension', bytes: 'io_extend_bytes', requests: 'io_extends' },
} as const satisfies Record<string, RequestKind>

/** The requests that a setting of a bulk size makes larger; null for another setting. */
export function requestsOf(setting: string): RequestKind | null {
  if (setting === 'polar_bulk_read_size') return kinds.reads
  if (setting === 'polar_bulk_write_size') return kinds.writes
  // by how much an index that is built grows is not in pg_stat_io: the extensions there are those of tables
  return setting === 'polar_bulk_extend_size' ? kinds.extensions : null
}

/** So much time before and after a change is compared. */
export const comparedMs = 10 * 60_000

/**
 * A change is confirmed shortly after it took effect, and the clocks of host and console differ a little: what was
 * measured so close to it counts for neither side.
 */
const marginMs = 5_000

type Change = { at: number; newValue: string | null; oldValue: string | null }
export type Compared = { at: number; before: Range; after: Range }
type Range = { from: number; to: number }

/** The times to compare around the newest change of a setting: none reaches beyond the change before it. Newest first. */
export function comparedTimes(changes: readonly Change[]): Compared | null {
  const told = changes.filter((c) => c.oldValue !== c.newValue)
  const [last, previous] = told
  if (!last) return null
  const from = Math.max(last.at - comparedMs, previous ? previous.at + marginMs : 0)
  return {
    at: last.at,
    before: { from, to: last.at - marginMs },
    after: { from: last.at + marginMs, to: last.at + comparedMs },
  }
}

/** Of one side: bytes in an average request, over so much measured time. */
export type RequestSize =
  | { known: true; bytesPerRequest: number; requests: number; measuredMs: number }
  /** `none`: measured, and there was no such request. `unmeasured`: no sample of that time is stored, or none says it. */
  | { known: false; why: 'none' | 'unmeasured' }

/** The average request within a range, by the samples that lie in it as a whole. */
export function requestSize(
  { points, metrics }: Pick<TelemetryHistory, 'points' | 'metrics'>,
  kind: RequestKind,
  range: Range,
): RequestSize {
  const [bytesAt, requestsAt] = [metrics.indexOf(kind.bytes), metrics.indexOf(kind.requests)]
  let bytes = 0
  let requests = 0
  let measuredMs = 0
  for (const { at, intervalMs, average } of points) {
    const [bytesPerSecond, requestsPerSecond] = [average[bytesAt] ?? null, average[requestsAt] ?? null]
    if (
      at > range.to ||
      at - intervalMs < range.from ||
      bytesPerSecond === null ||
      requestsPerSecond === null
    )
      continue
    bytes += (bytesPerSecond * intervalMs) / 1_000
    requests += (requestsPerSecond * intervalMs) / 1_000
    measuredMs += intervalMs
  }
  if (measuredMs === 0) return { known: false, why: 'unmeasured' }
  if (requests < 0.5) return { known: false, why: 'none' }
  return { known: true, bytesPerRequest: bytes / requests, requests: Math.round(requests), measuredMs }
}
