import { type BenchReport, engineBenchNames } from './bench'

/** What a benchmark that is made of rounds may be told. */
export type RoundsAsked = { rounds?: number; seed?: number; hosts?: number; faults?: string[] }
/** What a benchmark may be told; which of it is for which one, `takes` says. */
export type BenchAsked = RoundsAsked & { minutes?: number }

type ProductBench = (
  short: boolean,
  say: (line: string) => void,
  log: (line: string) => void,
  asked?: BenchAsked,
) => Promise<BenchReport>

/** Benchmarks of the whole product; those of the engine are folders of their own. */
export const productBenches: Record<string, () => Promise<ProductBench>> = {
  'agent-memory': async () => (await import('./agent-memory')).benchAgentMemory,
  chaos: async () => (await import('./chaos/chaos')).benchChaos,
  'failover-automatic': async () => (await import('./chaos/failover-automatic')).benchFailoverAutomatic,
  fleet: async () => (await import('./fleet')).benchFleet,
  monitoring: async () => (await import('./monitoring')).benchMonitoring,
  neighbours: async () => (await import('./neighbours')).benchNeighbours,
  switchover: async () => (await import('./switchover')).benchSwitchover,
  'synchronous-commit': async () => (await import('./synchronous-commit')).benchSynchronousCommit,
}

const OF_ROUNDS = ['rounds', 'seed', 'hosts', 'faults'] as const

/** What a benchmark can be told by options; the others take none. */
export const takes: Partial<Record<string, readonly (keyof BenchAsked)[]>> = {
  chaos: OF_ROUNDS,
  'failover-automatic': OF_ROUNDS,
  neighbours: ['minutes'],
}

/** Names of all benchmarks: the engine's own and those of the whole product. */
export function benchNames(): string[] {
  return [...engineBenchNames(), ...Object.keys(productBenches)].sort()
}
