import { setTimeout as delay } from 'node:timers/promises'
import { type Fault, FaultError, fault, type HostPackages, toFault, whyNotTogether } from '@floe/domain'
import { BroughtPackages } from '../../host/brought-packages'
import {
  isAtWork,
  refuseDowngrade,
  refuseUnmet,
  startDpkg,
  verifyPackage,
  whatIsLeft,
  wordsOfDpkg,
} from '../../host/dpkg'
import { isPackaged, readPackages } from '../../host/installed-packages'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'
import { refuseHost } from './refuse-host'

const LOOK_MS = 500
/** dpkg takes seconds; it may wait for a slow disk. */
const DPKG_MAX_MS = 900_000

const SLOW = 'package.slow'

type Task = TaskOf<'install-packages'>
/** That dpkg was asked, and what came of it where it failed. */
type Noted = { failed?: Fault }

/**
 * Verifies the packages that were brought and has dpkg install them, in a unit of its own, because they stop this agent. The run
 * that ends the task is the new agent's, which finds it in its store and compares what is installed. That dpkg was asked is
 * noted before: a run after a kill looks for what became of it, and asks again only where it had not begun.
 */
export const installPackages: TaskBody<'install-packages'> = async (task, context) => {
  const { installation, note } = context
  refuseHost(installation, isPackaged())
  const brought = new BroughtPackages(installation.stateDirectory)
  const noted = note.read() as Noted | null
  if (noted?.failed) throw new FaultError(noted.failed)
  try {
    const installed = await install(task, context, { brought, asked: noted !== null })
    brought.remove()
    return { installed }
  } catch (error) {
    // while dpkg works it has its files
    if (error instanceof FaultError && error.fault.code === SLOW) throw error
    if (note.read() !== null) note.write({ failed: toFault(error) } satisfies Noted)
    brought.remove()
    throw error
  }
}

async function install(
  task: Task,
  context: TaskContext,
  { brought, asked }: { brought: BroughtPackages; asked: boolean },
): Promise<HostPackages['installed']> {
  const { operationId, note, signal } = context
  const log = brought.logOf(operationId)
  let here = await readPackages()
  if (!isInstalled(task, here) || (await isAtWork(operationId))) {
    if (!asked) {
      signal.throwIfAborted()
      await verify(task, context, brought)
      signal.throwIfAborted()
      note.write({} satisfies Noted)
    }
    // from here on it goes through: dpkg is not interrupted
    if (wordsOfDpkg(log) === null && !(await isAtWork(operationId))) {
      const files = task.packages.map(({ digest }) => brought.fileOf(digest))
      context.log(
        `dpkg installs ${task.packages.map(({ name, version }) => `${name} ${version}`).join(', ')}`,
      )
      await startDpkg(operationId, { files, log, downgrade: task.downgrade })
    }
    await untilDpkgEnds(context, log)
    here = await readPackages()
  }
  if (!isInstalled(task, here)) throw whatIsLeft(task.packages, here, wordsOfDpkg(log) ?? '')
  return here.installed
}

const isInstalled = ({ packages }: Task, { installed }: HostPackages) =>
  packages.every(({ name, version }) =>
    installed.some((p) => p.name === name && p.version === version && p.status === 'installed'),
  )

async function verify(task: Task, context: TaskContext, brought: BroughtPackages): Promise<void> {
  const apart = whyNotTogether(task.packages)
  if (apart) throw new FaultError(apart)
  const here = await readPackages()
  const files: string[] = []
  for (const asked of task.packages) {
    const file = await brought.verify(asked)
    await verifyPackage(file, asked, here)
    if (!task.downgrade) await refuseDowngrade(asked, here)
    files.push(file)
  }
  await refuseUnmet(files, task.packages)
  context.log('the packages are those that were ordered')
}

async function untilDpkgEnds({ operationId, say }: TaskContext, log: string): Promise<void> {
  const until = performance.now() + DPKG_MAX_MS
  let begun = false
  while ((await isAtWork(operationId)) || (!begun && wordsOfDpkg(log) === null)) {
    begun = true
    say('dpkg installs the packages')
    if (performance.now() > until)
      throw fault(SLOW, 'dpkg has not ended', {
        detail: `It works for longer than ${DPKG_MAX_MS / 60_000} minutes.`,
        hint: `Look on the host: systemctl status floe-packages-${operationId}.service`,
      })
    await delay(LOOK_MS)
  }
}
