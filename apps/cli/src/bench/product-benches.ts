import { type BenchReport, engineBenchNames } from './bench'

/** What a benchmark that is made of rounds may be told. */
export type RoundsAsked = { rounds?: number; seed?: number; hosts?: number; faults?: string[] }

type ProductBench = (
  short: boolean,
  say: (line: string) => void,
  log: (line: string) => void,
  asked?: RoundsAsked,
) => Promise<BenchReport>

/** Benchmarks of the whole product; those of the engine are folders of their own. */
export const productBenches: Record<string, () => Promise<ProductBench>> = {
  chaos: async () => (await import('./chaos/chaos')).benchChaos,
  'failover-automatic': async () => (await import('./chaos/failover-automatic')).benchFailoverAutomatic,
  fleet: async () => (await import('./fleet')).benchFleet,
  monitoring: async () => (await import('./monitoring')).benchMonitoring,
  neighbours: async () => (await import('./neighbours')).benchNeighbours,
  switchover: async () => (await import('./switchover')).benchSwitchover,
  'synchronous-commit': async () => (await import('./synchronous-commit')).benchSynchronousCommit,
}

/** Those of them that are rounds of faults. */
export const benchesOfRounds: readonly string[] = ['chaos', 'failover-automatic']

/** Names of all benchmarks: the engine's own and those of the whole product. */
export function benchNames(): string[] {
  return [...engineBenchNames(), ...Object.keys(productBenches)].sort()
}
