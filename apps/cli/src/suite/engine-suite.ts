import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { type Counts, parseCounts, runInCheckout, type Suite, type SuiteContext } from './suite'

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
