import { globSync } from 'node:fs'
import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import type { SuiteContext } from './suite'

/**
 * Tests of which a quick run has chosen files only: `all` are the patterns of its room, `quick` the files, or directories
 * with a slash at their end, that a quick run has.
 */
export type QuickChoice = { room: string; all: string[]; quick: string[] }

/**
 * What `./floe test` runs of the tests that take long; the complete run (`--all`, which CI makes) has every file. Chosen is
 * what a change breaks first: a thing's whole life, what every page and host goes through, and the guarantees that losing
 * rows would break. A quick run is to end within ten minutes on two cores where the engine’s suite is remembered; who adds a
 * file takes another one out.
 */
export const quickChoices = {
  agent: {
    room: 'apps/agent',
    all: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    quick: [
      'src/',
      'test/certificates.test.ts',
      'test/crash-reason.test.ts',
      'test/database-roles.test.ts',
      'test/enrol.test.ts',
      'test/flashback-log.test.ts',
      'test/full-disk.test.ts',
      'test/instance-life.test.ts',
      'test/killed-agent.test.ts',
      'test/protection.test.ts',
      'test/settings.test.ts',
      'test/start-crashed.test.ts',
      'test/unconfirmed-admission.test.ts',
    ],
  },
  controller: {
    room: 'apps/controller',
    all: ['src/**/*.test.ts'],
    quick: [
      'src/observe/',
      'src/automatic-failover.test.ts',
      'src/certificates.test.ts',
      'src/cluster.test.ts',
      'src/owner.test.ts',
      'src/restored-records.test.ts',
      'src/standstills.test.ts',
      'src/survival.test.ts',
      'src/two-controllers.test.ts',
      'src/webhook-address.test.ts',
    ],
  },
  journeys: {
    room: 'e2e',
    all: ['journeys/**/*.spec.ts'],
    quick: [
      'journeys/1-first-run.spec.ts',
      'journeys/2-live.spec.ts',
      'journeys/3-reindex.spec.ts',
      'journeys/3-settings.spec.ts',
      'journeys/6-incidents.spec.ts',
      'journeys/8-page-repair.spec.ts',
      'journeys/9-account.spec.ts',
      'journeys/every-page.spec.ts',
    ],
  },
  launcher: {
    room: 'apps/cli',
    all: ['launcher/**/*.test.ts'],
    quick: ['launcher/boot.test.ts', 'launcher/life.test.ts'],
  },
  hostile: {
    room: 'apps/cli',
    all: ['hostile/**/*.test.ts'],
    quick: ['hostile/instance-superuser.test.ts'],
  },
  infra: {
    room: 'apps/cli',
    all: ['infra/**/*.test.ts'],
    quick: ['infra/host-prepare.test.ts'],
  },
} satisfies Record<string, QuickChoice>

export type QuickRoom = keyof typeof quickChoices

/** Files of a room, each with whether a quick run has it. */
export function filesOf({ room, all, quick }: QuickChoice, root = checkoutDirectory()) {
  return all
    .flatMap((pattern) => globSync(pattern, { cwd: join(root, room) }))
    .sort()
    .map((file) => ({
      file,
      quick: quick.some((one) => file === one || (one.endsWith('/') && file.startsWith(one))),
    }))
}

/**
 * What the program that runs a room's tests is to be asked for: what followed "--"; in a quick run the chosen files; else
 * nothing, which is all of them. `whole` where it is all of them.
 */
export function filesToRun(
  context: Pick<SuiteContext, 'all' | 'more' | 'leftOut'>,
  name: QuickRoom,
): { more: string[]; whole: boolean } {
  if (context.more.length > 0) return { more: context.more, whole: false }
  if (context.all) return { more: [], whole: true }
  const files = filesOf(quickChoices[name])
  const chosen = files.filter(({ quick }) => quick).map(({ file }) => file)
  context.leftOut(name, files.length - chosen.length, files.length)
  return { more: chosen, whole: chosen.length === files.length }
}
