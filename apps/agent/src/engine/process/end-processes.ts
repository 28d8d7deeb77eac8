import { fault } from '@floe/domain'
import { killProcess } from '@floe/host/process'
import { waitFor } from '@floe/host/wait'
import { runCommand } from '../../host/run-command'
import type { Instance } from '../instance'
import type { Work } from '../work'
import { nameProcesses } from './process-fault'

/** What was killed and is not gone by then waits inside the kernel, mostly for a disk. */
const KILLED_BOUND_MS = 15_000
/** Who forks faster than it is looked for is killed by a signal to all processes of its user at once. */
const FORKING_MS = 1_000

/**
 * Waits until no process of the instance is left, and kills those that have not ended by themselves within `graceMs`:
 * again and again, until a look finds none. `everything`: also what runs elsewhere as a user that only the instance has.
 * Fails with the names of those that cannot be killed; then nobody may say that the instance is stopped.
 */
export async function endProcesses(
  instance: Instance,
  { graceMs, everything }: { graceMs: number; everything: boolean },
  context: Pick<Work, 'log' | 'signal'>,
): Promise<void> {
  const left = () => {
    const { all, ofUser } = instance.processes()
    return everything ? ofUser : all
  }
  const none = async () => left().length === 0
  if (await waitFor(none, { boundMs: graceMs, everyMs: 20, signal: context.signal })) return
  context.log(`killing ${nameProcesses(left())}`)
  const begun = performance.now()
  const ended = await waitFor(
    async () => {
      const now = left()
      for (const { stat } of now) killProcess(stat)
      if (everything && performance.now() - begun > FORKING_MS) await killUser(instance)
      return now.length === 0
    },
    // from here on it is not given up: half of an engine is of no use
    { boundMs: KILLED_BOUND_MS, everyMs: 20 },
  )
  if (ended === null) {
    const now = left()
    throw fault(
      'instance.processes_left',
      `processes of instance "${instance.registered.name}" could not be ended`,
      {
        detail: `Of what was killed ${Math.round(KILLED_BOUND_MS / 1_000)} s ago is left: ${nameProcesses(now)}.`,
        hint: 'A process that waits for a disk ends when the disk answers. Fix the disk, or restart the host.',
      },
    )
  }
}

/** By the user itself: the kernel then reaches all of its processes in one go, and nobody else's. */
async function killUser(instance: Instance): Promise<void> {
  if (instance.registered.user === undefined) return
  await runCommand('/bin/sh', ['-c', 'kill -9 -1'], { user: instance.user, timeoutMs: 5_000 })
}
