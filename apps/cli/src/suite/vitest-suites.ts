import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { buildWorkspace } from '../up/workspace-build'
import { rememberedLine } from './remembered-runs'
import { rememberedWorkspace } from './remembered-workspaces'
import type { RepeatableRun } from './second-try'
import { type Counts, countsLine, runInCheckout, type Suite, type SuiteContext } from './suite'
import { countRun, judged, settle, type TestRun } from './test-files'
import { reportVariable } from './vitest-report'
import { type Workspace, workspaces } from './workspaces'

/** Runs Vitest in a directory: what was asked for after "--", else all that the configuration includes. */
export async function vitest(
  context: Pick<SuiteContext, 'logFile' | 'more'>,
  directory: string,
  o: { config?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<RepeatableRun> {
  const scratch = mkdtempSync(join(tmpdir(), 'floe-vitest-'))
  const report = join(scratch, 'report.json')
  const checkout = checkoutDirectory()
  try {
    const { status } = await runInCheckout(
      context,
      join(checkout, 'node_modules/.bin/vitest'),
      [
        'run',
        ...(o.config ? ['--config', o.config] : []),
        '--reporter=default',
        `--reporter=${join(checkout, 'apps/cli/src/suite/vitest-report.ts')}`,
        '--passWithNoTests',
        ...context.more,
      ],
      {
        cwd: directory,
        env: { ...o.env, [reportVariable]: report, NO_COLOR: '1', FORCE_COLOR: undefined },
      },
    )
    const run: TestRun = existsSync(report)
      ? (JSON.parse(readFileSync(report, 'utf8')) as TestRun)
      : { files: [], faults: [] }
    return {
      ...judged(run, status, checkout),
      again: (file) => vitest({ ...context, more: [join(checkout, file)] }, directory, o),
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Those whose tests run instances, each with a user of the system; the others have at most a control database. */
const withInstances = ['@floe/agent', '@floe/controller']

async function unit(context: SuiteContext): Promise<Counts> {
  // integration tests run what is built, as `up` does
  await buildWorkspace({ now: context.log, log: context.log }, ['agent', 'controller'])
  // hosts of their own in network namespaces, file systems that share blocks: tests say why they are left out without
  for (const name of ['iproute2', 'xfsprogs']) await context.packages(name)
  return eachWorkspace(context, ({ name }) => withInstances.includes(name))
}

async function packages(context: SuiteContext): Promise<Counts> {
  return eachWorkspace(context, ({ name }) => !withInstances.includes(name))
}

/** The tests of workspaces, one after another, but for those whose green run is remembered. */
async function eachWorkspace(
  context: SuiteContext,
  meant: (workspace: Workspace) => boolean,
): Promise<Counts> {
  const prefix = await context.enginePrefix()
  const runs: RepeatableRun[] = []
  for (const workspace of workspaces().filter(meant)) {
    if (!workspace.scripts.test?.startsWith('vitest')) continue
    const test = async () => {
      const run = await vitest(context, workspace.directory, { env: { FLOE_TEST_ENGINE_PREFIX: prefix } })
      context.log(`${workspace.name}: ${countsLine(countRun(run))}`)
      runs.push(run)
      return countRun(run)
    }
    const memory = rememberedWorkspace(workspace, prefix)
    if (!memory) {
      await test()
      continue
    }
    const before = context.all || context.more.length > 0 ? null : memory.find()
    if (before) context.say(`${workspace.name}: ${rememberedLine(before)}`)
    else await memory.remembering({ whole: context.more.length === 0, say: context.say }, test)
  }
  return settle(context, runs)
}

/** The launcher's own guarantees, against a real private installation. */
async function launcher(context: SuiteContext): Promise<Counts> {
  await context.enginePrefix()
  // of the file systems that neighbours share
  await context.packages('xfsprogs')
  const room = join(checkoutDirectory(), 'apps/cli')
  return settle(context, [await vitest(context, room, { config: 'vitest.launcher.config.ts' })])
}

export const packagesSuite: Suite = {
  name: 'packages',
  about: 'tests beside the code of every workspace that runs no instance',
  needs: 'checkout',
  run: packages,
}
export const unitSuite: Suite = {
  name: 'unit',
  about: 'tests of agent and controller, against real engines and on several hosts',
  needs: 'own',
  run: unit,
}
export const launcherSuite: Suite = {
  name: 'launcher',
  about: 'up, down, recovery after kill -9, and every verb, on a private installation',
  needs: 'own',
  run: launcher,
}
