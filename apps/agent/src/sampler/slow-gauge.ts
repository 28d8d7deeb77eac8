import type { MetricName } from '@floe/telemetry'

/**
 * A gauge too dear for every tick: measured at its own interval, held until the next measurement, and asked for more
 * rarely when it fails. A value older than two intervals is not known any more.
 */
export class SlowGauge {
  #next = 0
  #intervalMs: number
  #value: number | null = null
  #measuredAt = 0

  constructor(
    readonly sql: string,
    readonly metric: MetricName,
    readonly everyMs: number,
  ) {
    this.#intervalMs = everyMs
  }

  isDue(now: number): boolean {
    return now >= this.#next
  }

  async measure(ask: () => Promise<Record<string, unknown>>, now: number): Promise<void> {
    try {
      const value = (await ask())[this.metric]
      this.#value = typeof value === 'number' ? value : null
      this.#measuredAt = now
      this.#intervalMs = this.everyMs
    } catch {
      this.#intervalMs = Math.min(this.#intervalMs * 2, this.everyMs * 10)
    }
    this.#next = now + this.#intervalMs
  }

  value(now: number): number | null {
    return now - this.#measuredAt <= this.everyMs * 2 ? this.#value : null
  }
}
