/** The next number of a seeded sequence, from 0 up to 1: the same on every machine (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

export function shuffled<T>(values: readonly T[], random: () => number): T[] {
  const result = [...values]
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    const kept = result[i] as T
    result[i] = result[j] as T
    result[j] = kept
  }
  return result
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))

export type Planned<F, C> = {
  fault: F
  configuration: C
  /** Decides what is left to chance within a round, from 0 up to 1. */
  chance: number
}

/**
 * So many rounds, decided by the seed alone. Every fault comes once before any comes again, configurations go round too,
 * and after faults × configurations rounds every pair has been there once.
 */
export function plan<F, C>(
  seed: number,
  rounds: number,
  faults: readonly F[],
  configurations: readonly C[],
): Planned<F, C>[] {
  const random = seeded(seed)
  const [ofFaults, ofConfigurations] = [shuffled(faults, random), shuffled(configurations, random)]
  const [f, c] = [faults.length, configurations.length]
  // how far configurations move on from one turn of the faults to the next; without a common divisor no pair comes twice
  let step = Math.max(1, Math.min(f, c - 1))
  while (divisor(step, c) !== 1) step--
  return Array.from({ length: rounds }, (_, i) => ({
    fault: ofFaults[i % f] as F,
    configuration: ofConfigurations[((i % f) + Math.floor(i / f) * step) % c] as C,
    chance: random(),
  }))
}
