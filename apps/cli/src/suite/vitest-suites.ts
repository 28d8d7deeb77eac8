import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { add, type Counts, none, runInCheckout, type Suite, type SuiteContext } from './suite'
import { workspaces } from './workspaces'

type VitestReport = {
  success: boolean
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  numTodoTests: number
  testResults: { status: string; assertionResults: unknown[] }[]
}

/** Counts of a Vitest report. A file that could not be loaded is a failure though it has no test. */
export function countVitest(report: VitestReport): Counts {
  const broken = report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  ).length
  const failed = report.numFailedTests + broken
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && !report.success ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}

/** Runs Vitest in a directory and counts its tests. */
export async function vitest(
  context: SuiteContext,
  directory: string,
  args: string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Counts> {
  const scratch = mkdtempSync(join(tmpdir(), 'floe-vitest-'))
  const report = join(scratch, 'report.json')
  try {
    const { status } = await runInCheckout(
      context,
      join(checkoutDirectory(), 'node_modules/.bin/vitest'),
      [
        'run',
        '--reporter=default',
        '--reporter=json',
        `--outputFile.json=${report}`,
        '--passWithNoTests',
        ...args,
      ],
      { cwd: directory, env: { ...env, NO_COLOR: '1', FORCE_COLOR: undefined } },
    )
    if (!existsSync(report)) return { ...none, failed: status === 0 ? 0 : 1 }
    const counts = countVitest(JSON.parse(readFileSync(report, 'utf8')) as VitestReport)
    return status !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function unit(context: SuiteContext): Promise<Counts> {
  const prefix = await context.enginePrefix()
  // integration tests run what is built, as `up` does
  const built = await runInCheckout(context, join(checkoutDirectory(), 'node_modules/.bin/turbo'), [
    'run',
    'build',
    '--output-logs',
    'errors-only',
    '--filter=@floe/agent',
    '--filter=@floe/controller',
  ])
  if (built.status !== 0) return { ...none, failed: 1 }
  // hosts of their own in network namespaces, file systems that share blocks: tests say why they are left out without
  for (const name of ['iproute2', 'xfsprogs']) await context.packages(name)
  let counts = none
  for (const workspace of workspaces()) {
    if (!workspace.scripts.test?.startsWith('vitest')) continue
    const found = await vitest(context, workspace.directory, context.more, {
      FLOE_TEST_ENGINE_PREFIX: prefix,
    })
    context.log(`${workspace.name}: ${found.passed} passed, ${found.failed} failed, ${found.skipped} skipped`)
    counts = add(counts, found)
  }
  return counts
}

/** The launcher's own guarantees, against a real private installation. */
async function launcher(context: SuiteContext): Promise<Counts> {
  await context.enginePrefix()
  return vitest(context, join(checkoutDirectory(), 'apps/cli'), [
    '--config',
    'vitest.launcher.config.ts',
    ...context.more,
  ])
}

export const unitSuite: Suite = {
  name: 'unit',
  about: 'tests beside the code of every workspace, those against a real engine included',
  lane: 'workspace',
  run: unit,
}
export const launcherSuite: Suite = {
  name: 'launcher',
  about: 'up, down, recovery after kill -9, and every verb, on a private installation',
  lane: 'alone',
  run: launcher,
}
