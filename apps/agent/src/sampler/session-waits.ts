/** A wait, ms, that this part of all waits has not exceeded; null where there are none. */
function percentile(counts: readonly number[], part: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let seen = 0
  for (const [n, count] of counts.entries()) {
    seen += count
    // waits of place n were shorter than 2^(n + 1) µs
    if (seen >= part * total) return 2 ** (n + 1) / 1_000
  }
  return null
}

const histogramOf = (said: unknown): number[] | null =>
  Array.isArray(said) &&
  said.length > 0 &&
  said.length <= 64 &&
  said.every((count) => Number.isFinite(count) && count >= 0)
    ? said
    : null

/**
 * How long sessions waited for a worker between two ticks. The engine counts waits since its start, by powers of two of a
 * microsecond, so that percentiles of an interval follow from the difference of two counts.
 */
export class SessionWaits {
  #before: { counts: number[]; life: unknown } | null = null

  /** `said` is the engine's histogram, `life` distinguishes counts from those of another start; null where nobody waited. */
  between(said: unknown, life: unknown): { p50: number; p99: number } | null {
    const before = this.#before
    const counts = histogramOf(said)
    this.#before = counts && { counts, life }
    if (!counts || !before || before.life !== life || before.counts.length !== counts.length) return null
    const grown = counts.map((count, n) => count - (before.counts[n] as number))
    // a smaller count is of another life, whatever the engine says
    if (grown.some((count) => count < 0)) return null
    const p50 = percentile(grown, 0.5)
    const p99 = percentile(grown, 0.99)
    return p50 === null || p99 === null ? null : { p50, p99 }
  }
}
