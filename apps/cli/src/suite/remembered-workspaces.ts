import { join, relative } from 'node:path'
import { cacheDirectory, checkoutDirectory } from '../installation/home'
import { keyOf, outputOf, systemUnderTest } from './engine-suite-key'
import { type RememberedRun, RememberedRuns } from './remembered-runs'
import type { Counts } from './suite'
import { type Workspace, workspaces } from './workspaces'

/**
 * Workspaces whose tests take minutes, with what they read of the checkout besides what they depend on. A green run of one
 * is remembered by everything that decides it, so that a change elsewhere does not run it.
 */
const remembered: Record<string, string[]> = {
  '@floe/agent': ['engine/modules', 'infra/host-check'],
  // its hosts run the agent
  '@floe/controller': ['apps/agent', 'engine/modules', 'infra/host-check'],
}

/** What decides every one: versions of packages, how TypeScript is read, and what runs the tests. */
const common = [
  'package.json',
  'package-lock.json',
  'tooling/tsconfig',
  'apps/cli/src/suite',
  'apps/cli/src/run-program.ts',
]

/** Files and directories below the checkout that decide the tests of a workspace. */
export function decisiveFor(workspace: Workspace, all: Workspace[], root: string): string[] {
  const reached = new Set([workspace])
  // each is visited once, and those that are found on the way are visited too
  for (const { dependencies } of reached)
    for (const other of all) if (dependencies.includes(other.name)) reached.add(other)
  return [
    ...common,
    ...[...reached].map(({ directory }) => relative(root, directory)),
    ...(remembered[workspace.name] ?? []),
  ]
}

/** What decides them outside of the checkout: the system, what tests ask for there, Node, and the engine. */
function system(root: string, enginePrefix: string): string {
  const packages = outputOf('dpkg-query', ['-W', 'iproute2', 'xfsprogs'])
  const { FLOE_TEST_LONG = '' } = process.env
  return [systemUnderTest(root), packages, process.version, enginePrefix, FLOE_TEST_LONG].join('\0')
}

/** The green runs of a workspace's tests; null where they are run each time. */
export function rememberedWorkspace(workspace: Workspace, enginePrefix: string) {
  if (!(workspace.name in remembered)) return null
  const root = checkoutDirectory()
  const runs = new RememberedRuns(join(cacheDirectory(), `unit-${workspace.name.replace(/\W+/g, '-')}.json`))
  const key = () => keyOf(root, decisiveFor(workspace, workspaces(), root), system(root, enginePrefix))
  return {
    find(): RememberedRun | null {
      const current = key()
      return current === null ? null : runs.find(current)
    },
    remembering: (o: { whole: boolean; say: (line: string) => void }, run: () => Promise<Counts>) =>
      runs.remembering(key, o, run),
  }
}
