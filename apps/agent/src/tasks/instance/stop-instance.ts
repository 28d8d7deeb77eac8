import { z } from 'zod'
import type { Instance } from '../../engine/instance'
import { endProcesses } from '../../engine/process/end-processes'
import { postmasterRuns } from '../../engine/process/postmaster'
import type { TaskBody, TaskContext } from '../runner/task'
import { endInstance, STOP_BOUND_MS, tell } from './end-instance'

/** Stops an instance; an immediate stop of one that another task is stopping only ends what that waits for. */
export const stopInstance: TaskBody<'stop-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  if (task.mode === 'immediate' && (instance.activity === 'stopping' || context.note.read() !== null))
    return escalateStop(instance, context, task.deadlineMs)
  return endInstance(instance, task.mode, context, task.deadlineMs)
}

const Hastened = z.object({ pid: z.number(), startTicks: z.number() })

/**
 * Ends the process that another task is stopping, and no other: by the time of a second run of this one, the instance
 * may have been started again. What was ordered of the instance stays that task's affair.
 */
async function escalateStop(
  instance: Instance,
  context: TaskContext,
  deadlineMs = STOP_BOUND_MS,
): Promise<{ stoppedMs: number }> {
  const begun = performance.now()
  const noted = Hastened.safeParse(context.note.read())
  const postmaster = noted.success ? noted.data : instance.postmaster
  if (postmaster && postmasterRuns(postmaster)) {
    try {
      context.note.write({ pid: postmaster.pid, startTicks: postmaster.startTicks })
    } catch {
      // on a full disk it has to do without
    }
    context.log('stopping the engine (immediate) instead of waiting for it')
    // as long as this one has not ended, what runs here is of no later start
    if (!(await tell(postmaster, 'immediate', context, deadlineMs)))
      await endProcesses(instance, { graceMs: 0, everything: false }, context)
  } else context.log('it has already ended')
  return { stoppedMs: performance.now() - begun }
}
