import { fault, type StopMode } from '@floe/domain'
import type { Instance } from '../engine/instance'
import { postmasterRuns } from '../engine/postmaster'
import { type TaskBody, type TaskContext, waitFor } from './task'

/** A fast shutdown writes a checkpoint; on a slow disk with much memory that takes its time. */
const STOP_BOUND_MS = 3_600_000

/** What pg_ctl sends for each mode. */
const signals = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

export const stopInstance: TaskBody<'stop-instance'> = async (task, context) => {
  return endInstance(context.instances.get(task.instanceId), task.mode, context)
}

/** Stops the instance unless it is stopped and waits until its process has ended. A stop is not given up half-way. */
export async function endInstance(
  instance: Instance,
  mode: StopMode,
  context: Pick<TaskContext, 'registry' | 'log'>,
): Promise<{ stoppedMs: number }> {
  const begun = performance.now()
  instance.activity = 'stopping'
  try {
    context.registry.update(instance.instanceId, { expected: 'stopped' })
    await instance.look()
    const postmaster = instance.postmaster
    if (postmaster) {
      context.log(`stopping the engine (${mode})`)
      process.kill(postmaster.pid, signals[mode])
      const ended = await waitFor(async () => !postmasterRuns(postmaster), {
        boundMs: STOP_BOUND_MS,
        everyMs: 20,
      })
      if (ended === null)
        throw fault('instance.not_stopped', 'the engine did not end within an hour', {
          hint: 'Stop it with mode "immediate".',
        })
      context.log(`stopped after ${Math.round(performance.now() - begun)} ms`)
    } else context.log('it is not running')
    return { stoppedMs: performance.now() - begun }
  } finally {
    instance.activity = null
    await instance.look()
  }
}
