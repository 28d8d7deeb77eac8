import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { type Counts, parseCounts, runInCheckout, type Suite, type SuiteContext } from './suite'

const tool = () => join(checkoutDirectory(), 'engine/tools/engine')

/** What the engine's suite consists of, as its tool names it: checks of its own, PostgreSQL's suites, every module. */
export function engineSuiteNames(): string[] {
  const { stdout, status } = spawnSync(tool(), ['test', '--list'], { encoding: 'utf8' })
  return status === 0 ? stdout.trim().split('\n') : []
}

async function engine(context: SuiteContext): Promise<Counts> {
  const { stdout, status } = await runInCheckout(context, tool(), ['test', ...context.more])
  const counts = parseCounts(stdout) ?? { passed: 0, failed: 0, skipped: 0 }
  return status !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts
}

export const engineSuite: Suite = {
  name: 'engine',
  about: 'PostgreSQL’s regression and isolation suites on the patched engine, then every module’s tests',
  lane: 'engine',
  run: engine,
}
