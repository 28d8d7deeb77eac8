import { fault, type StopMode } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import { z } from 'zod'
import type { Instance } from '../engine/instance'
import { type Postmaster, postmasterRuns } from '../engine/postmaster'
import { endProcesses } from './end-processes'
import type { TaskBody, TaskContext } from './task'

/** A fast shutdown writes a checkpoint; on a slow disk with much memory that takes its time. */
const STOP_BOUND_MS = 600_000
/** An engine that does not obey an immediate shutdown for this long stands still; it gives its own processes half of it. */
const IMMEDIATE_BOUND_MS = 10_000
/** What a postmaster that ended in order leaves, e.g. its logger and programs that sessions started, has this long to end. */
const LEFT_GRACE_MS = 2_000

/** What pg_ctl sends for each mode. */
const signals = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

export const stopInstance: TaskBody<'stop-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  if (task.mode === 'immediate' && (instance.activity === 'stopping' || context.note.read() !== null))
    return escalateStop(instance, context, task.deadlineMs)
  return endInstance(instance, task.mode, context, task.deadlineMs)
}

/**
 * Stops the instance unless it is stopped and waits until every process of it has ended. An engine that was told to stop
 * cannot be told otherwise: who gives up, or whose deadline has passed, leaves it stopping. One that does not obey an
 * immediate stop is killed with all its processes, and so is what a postmaster leaves behind.
 */
export async function endInstance(
  instance: Instance,
  mode: StopMode,
  context: Pick<TaskContext, 'registry' | 'log' | 'signal'>,
  deadlineMs = STOP_BOUND_MS,
  everything = false,
): Promise<{ stoppedMs: number }> {
  const begun = performance.now()
  context.signal.throwIfAborted()
  instance.activity = 'stopping'
  try {
    context.registry.update(instance.instanceId, { expected: 'stopped' })
    await instance.look()
    const postmaster = instance.postmaster
    const works = instance.works()
    if (works) context.log(`stopping the engine (${mode})`)
    const inOrder = postmaster !== null && (await tell(postmaster, mode, context, deadlineMs))
    await endProcesses(instance, { graceMs: inOrder ? LEFT_GRACE_MS : 0, everything }, context)
    context.log(works ? `stopped after ${Math.round(performance.now() - begun)} ms` : 'it is not running')
    return { stoppedMs: performance.now() - begun }
  } finally {
    instance.activity = null
    await instance.look()
  }
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

/** Signals the postmaster and waits for its end. False where one that is to end immediately has not after a moment. */
async function tell(
  postmaster: Pick<Postmaster, 'pid' | 'startTicks'>,
  mode: StopMode,
  context: Pick<TaskContext, 'signal' | 'log'>,
  deadlineMs: number,
): Promise<boolean> {
  try {
    process.kill(postmaster.pid, signals[mode])
  } catch {
    // it ended in the meantime
  }
  const ended = await waitFor(async () => !postmasterRuns(postmaster), {
    boundMs: mode === 'immediate' ? Math.min(deadlineMs, IMMEDIATE_BOUND_MS) : deadlineMs,
    everyMs: 20,
    signal: context.signal,
  })
  if (ended !== null) return true
  if (mode === 'fast')
    throw fault('instance.not_stopped', 'the engine did not end in time', {
      detail: `It was waited for ${Math.round(deadlineMs / 1_000)} s and goes on stopping.`,
      hint: 'Stop it with mode "immediate".',
    })
  context.log('it does not obey')
  return false
}
