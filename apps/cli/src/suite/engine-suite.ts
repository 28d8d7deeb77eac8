import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { cacheDirectory, checkoutDirectory } from '../installation/home'
import { engineSuiteKey, systemUnderTest } from './engine-suite-key'
import { RememberedRuns } from './remembered-runs'
import { type Counts, parseCounts, runInCheckout, type Suite, type SuiteContext } from './suite'
import { type FileTime, firstLine } from './test-files'

const tool = () => join(checkoutDirectory(), 'engine/tools/engine')

/**
 * What the engine's suite consists of, as its tool names it: checks of its own, PostgreSQL's suites, every module; also what
 * only `--long` runs without being named.
 */
export function engineSuiteNames(): string[] {
  const { stdout, status } = spawnSync(tool(), ['test', '--list', '--long'], { encoding: 'utf8' })
  return status === 0 ? stdout.trim().split('\n') : []
}

/** What the engine's tool says of how long each part ran: a suite, or a TAP file as it can be named after `engine`. */
export function engineTimes(output: string): FileTime[] {
  return [...output.matchAll(/^(\S+) +took (\d+) s$/gm)].map((match) => ({
    file: `engine ${match[1]}`,
    seconds: Number(match[2]),
  }))
}

/**
 * What the engine's tool names as failed, a line for each: the part (`page_repair/011_tls`), the TAP line, and what its
 * diagnostics say; of a difference of pg_regress only the test, since its lines say little without each other.
 */
export function engineFailures(output: string): string[] {
  const failures: string[] = []
  for (const match of output.matchAll(/^failed: (.+)\n((?: {2}.*\n)*)/gm)) {
    const said = (match[2] as string)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '' && !/^#\s+Failed test/.test(line))
      .map((line) => line.replace(/^#\s*/, ''))
    const difference = said[0]?.startsWith('diff ') ?? false
    const name = (match[1] as string).replace(/\s+/g, ' ')
    failures.push(firstLine(said.length === 0 || difference ? name : `${name}: ${said.join(' ')}`))
  }
  return failures
}

/** The green runs of the whole suite, kept where the engines are. */
const runs = () => new RememberedRuns(join(cacheDirectory(), 'engine-suite.json'))
const key = () => engineSuiteKey(checkoutDirectory(), systemUnderTest(checkoutDirectory()))

async function engine(context: SuiteContext): Promise<Counts> {
  return runs().remembering(key, { whole: context.more.length === 0, say: context.say }, async () => {
    // the release engine is built first: two builds at once take longer than one after the other
    await context.enginePrefix()
    const { stdout, status } = await runInCheckout(context, tool(), ['test', ...context.more])
    for (const { file, seconds } of engineTimes(stdout)) context.took(file, seconds)
    for (const line of engineFailures(stdout)) context.failed(line)
    const counts = parseCounts(stdout) ?? { passed: 0, failed: 0, skipped: 0 }
    return status !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts
  })
}

export const engineSuite: Suite = {
  name: 'engine',
  about: 'PostgreSQL’s regression and isolation suites on the patched engine, then every module’s tests',
  needs: 'own',
  run: engine,
  remembered: () => {
    const current = key()
    return current === null ? null : runs().find(current)
  },
}
