import { type BenchReport, engineBenchNames } from './bench'

type ProductBench = (
  short: boolean,
  say: (line: string) => void,
  log: (line: string) => void,
) => Promise<BenchReport>

/** Benchmarks of the whole product; those of the engine are folders of their own. */
export const productBenches: Record<string, () => Promise<ProductBench>> = {
  fleet: async () => (await import('./fleet')).benchFleet,
  monitoring: async () => (await import('./monitoring')).benchMonitoring,
  switchover: async () => (await import('./switchover')).benchSwitchover,
  'synchronous-commit': async () => (await import('./synchronous-commit')).benchSynchronousCommit,
}

/** Names of all benchmarks: the engine's own and those of the whole product. */
export function benchNames(): string[] {
  return [...engineBenchNames(), ...Object.keys(productBenches)].sort()
}
