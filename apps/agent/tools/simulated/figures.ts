import { metrics, SAMPLE_INTERVAL_MS } from '@floe/telemetry'

/** Different sets of figures; a number without a common factor with what they are picked by, so that none comes back soon. */
const SETS = 211

/** A number between 0 and 1 that follows from its place alone, so that a run can be repeated. */
function noise(a: number, b: number): number {
  const x = Math.sin(a * 12.9898 + b * 78.233) * 43_758.5453
  return x - Math.floor(x)
}

function figureOf(metric: (typeof metrics)[number], set: number, position: number): number {
  const n = noise(set + 1, position + 1)
  if (metric.kind === 'ratio') return n
  // sizes are whole, rates are quotients by a measured interval
  if (metric.kind === 'gauge') return Math.floor(metric.unit === 'B' ? n * 2 ** 34 : n * 200)
  return (n * (metric.unit === 'B/s' ? 5e7 : 5e3)) / 1.0007
}

/** Every metric of the catalogue, as JSON, made once: making figures must not cost what reading them costs. */
const sets: string[] = Array.from({ length: SETS }, (_, set) =>
  JSON.stringify(Object.fromEntries(metrics.map((m, i) => [m.name, figureOf(m, set, i)]))),
)

/**
 * The samples of one simulated instance since it was started, each following from its number alone: nothing is kept, and
 * whoever asks again gets the same answer.
 */
export class SimulatedFigures {
  readonly #startedAt: number
  readonly #place: number

  /** `place` tells one instance from another: its figures and where in the second its tick lies. */
  constructor(startedAt: number, place: number) {
    // instances share the second between them, as with a real agent
    this.#startedAt = startedAt + ((place * 379) % SAMPLE_INTERVAL_MS)
    this.#place = place
  }

  /** Number of the newest sample, -1 before the first. */
  newest(now: number): number {
    return Math.floor((now - this.#startedAt) / SAMPLE_INTERVAL_MS) - 1
  }

  at(seq: number): number {
    return this.#startedAt + (seq + 1) * SAMPLE_INTERVAL_MS + ((seq * 7) % 3)
  }

  /** One sample in JSON. */
  sample(seq: number): string {
    const values = sets[(seq * 31 + this.#place * 17) % SETS] as string
    const intervalMs = this.at(seq) - this.at(seq - 1)
    return `{"seq":${seq},"at":${this.at(seq)},"intervalMs":${intervalMs},"values":${values}}`
  }
}
