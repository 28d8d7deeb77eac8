import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { type Counts, parseCounts, runInCheckout, type Suite, type SuiteContext } from './suite'

/** What the engine's suite consists of, by the names its tool takes: its own checks, PostgreSQL's suites, every module. */
export function engineSuiteNames(): string[] {
  const modules = join(checkoutDirectory(), 'engine/modules')
  const withTests = readdirSync(modules).filter((name) => existsSync(join(modules, name, 'Makefile')))
  return ['patches', 'indent', 'regress', 'regress-defaults', 'isolation', 'testkit', ...withTests.sort()]
}

async function engine(context: SuiteContext): Promise<Counts> {
  const { stdout, status } = await runInCheckout(context, join(checkoutDirectory(), 'engine/tools/engine'), [
    'test',
    ...context.more,
  ])
  const counts = parseCounts(stdout) ?? { passed: 0, failed: 0, skipped: 0 }
  return status !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts
}

export const engineSuite: Suite = {
  name: 'engine',
  about: 'PostgreSQL’s regression and isolation suites on the patched engine, then every module’s tests',
  lane: 'engine',
  run: engine,
}
