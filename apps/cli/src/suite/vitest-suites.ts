import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { programs } from '../process/records'
import { buildWorkspace } from '../up/workspace-build'
import { filesToRun, type QuickRoom } from './quick-files'
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
const withInstances: Record<string, QuickRoom> = { '@floe/agent': 'agent', '@floe/controller': 'controller' }

async function unit(context: SuiteContext): Promise<Counts> {
  // integration tests run what is built, as `up` does
  await buildWorkspace({ now: context.log, log: context.log }, ['agent', 'controller'])
  // hosts of their own in network namespaces, file systems that share blocks: tests say why they are left out without
  for (const name of ['iproute2', 'xfsprogs']) await context.packages(name)
  // one agent for both, apart from what a build beside this run would replace
  const scratch = mkdtempSync(join(tmpdir(), 'floe-agent-bundle-'))
  try {
    const built = join(checkoutDirectory(), programs.agent.built)
    cpSync(dirname(built), scratch, { recursive: true })
    return await eachWorkspace(context, ({ name }) => name in withInstances, {
      FLOE_TEST_AGENT_BUNDLE: join(scratch, basename(built)),
    })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function packages(context: SuiteContext): Promise<Counts> {
  return eachWorkspace(context, ({ name }) => !(name in withInstances))
}

/** The tests of workspaces, one after another, but for those whose green run is remembered. */
async function eachWorkspace(
  context: SuiteContext,
  meant: (workspace: Workspace) => boolean,
  env: NodeJS.ProcessEnv = {},
): Promise<Counts> {
  const prefix = await context.enginePrefix()
  const runs: RepeatableRun[] = []
  for (const workspace of workspaces().filter(meant)) {
    if (!workspace.scripts.test?.startsWith('vitest')) continue
    const memory = rememberedWorkspace(workspace, prefix)
    const before = context.all || context.more.length > 0 ? null : memory?.find()
    if (before) {
      context.say(`${workspace.name}: ${rememberedLine(before)}`)
      continue
    }
    const room = withInstances[workspace.name]
    const { more, whole } = room
      ? filesToRun(context, room)
      : { more: context.more, whole: context.more.length === 0 }
    const test = async () => {
      const run = await vitest({ ...context, more }, workspace.directory, {
        env: { ...env, FLOE_TEST_ENGINE_PREFIX: prefix },
      })
      context.log(`${workspace.name}: ${countsLine(countRun(run))}`)
      runs.push(run)
      return countRun(run)
    }
    if (memory) await memory.remembering({ whole, say: context.say }, test)
    else await test()
  }
  return settle(context, runs)
}

/** The launcher's own guarantees, against a real private installation. */
async function launcher(context: SuiteContext): Promise<Counts> {
  await context.enginePrefix()
  // of the file systems that neighbours share
  await context.packages('xfsprogs')
  const room = join(checkoutDirectory(), 'apps/cli')
  const { more } = filesToRun(context, 'launcher')
  return settle(context, [await vitest({ ...context, more }, room, { config: 'vitest.launcher.config.ts' })])
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
