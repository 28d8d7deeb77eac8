import type { StepWork } from '@floe/domain'

/** The pace is that of the last so many ms. */
const WINDOW_MS = 30_000
/** Nothing is foretold from less. */
const LEAST_MS = 5_000
/** How slowly a foretold end gives way to a new one. */
const SMOOTH_MS = 15_000

/**
 * How fast work goes on, and so when it will end. The foretold end is smoothed, so that uneven work does not make it
 * jump. Unknown until bytes have flowed for five seconds, when none flowed for half a minute, and without a total.
 */
export class Pace {
  /** Oldest first; the first lies at or before the window's begin. */
  #points: { at: number; doneBytes: number }[] = []
  #totalBytes: number | null = null
  #foretold: { at: number; end: number } | null = null

  /** So many bytes were done at `at` (ms of any clock that does not go back). */
  see(doneBytes: number, totalBytes: number | null, at: number): void {
    const last = this.#points.at(-1)
    // another try starts from zero; before the first byte the time is not the work's
    if (last && (doneBytes < last.doneBytes || last.doneBytes === 0)) {
      this.#points = []
      this.#foretold = null
    }
    this.#points.push({ at, doneBytes })
    while (this.#points.length > 1 && (this.#points[1]?.at ?? at) <= at - WINDOW_MS) this.#points.shift()
    this.#totalBytes = totalBytes
  }

  /** What was seen last, and how long the rest takes; null before anything was seen. */
  work(at: number): StepWork | null {
    const last = this.#points.at(-1)
    if (!last) return null
    const { doneBytes } = last
    return { doneBytes, totalBytes: this.#totalBytes, remainingMs: this.#remaining(doneBytes, at) }
  }

  #remaining(doneBytes: number, at: number): number | null {
    const from = at - WINDOW_MS
    const first = this.#points.findLast((p) => p.at <= from) ?? this.#points[0]
    const measuredMs = first ? at - Math.max(first.at, from) : 0
    const bytes = first ? doneBytes - first.doneBytes : 0
    const left = this.#totalBytes === null ? -1 : this.#totalBytes - doneBytes
    if (measuredMs < LEAST_MS || bytes <= 0 || left < 0) {
      this.#foretold = null
      return null
    }
    const now = at + (left * measuredMs) / bytes
    const before = this.#foretold
    const weight = before ? 1 - Math.exp(-(at - before.at) / SMOOTH_MS) : 1
    const end = before ? before.end + (now - before.end) * weight : now
    this.#foretold = { at, end }
    // to the second: nobody can use more, and what does not change need not be stored
    return Math.max(0, Math.round((end - at) / 1_000) * 1_000)
  }
}
