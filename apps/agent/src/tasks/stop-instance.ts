import { fault, type StopMode } from '@floe/domain'
import { z } from 'zod'
import type { Instance } from '../engine/instance'
import { type Postmaster, postmasterRuns } from '../engine/postmaster'
import { type TaskBody, type TaskContext, waitFor } from './task'

/** A fast shutdown writes a checkpoint; on a slow disk with much memory that takes its time. */
const STOP_BOUND_MS = 600_000

/** What pg_ctl sends for each mode. */
const signals = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

export const stopInstance: TaskBody<'stop-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  if (task.mode === 'immediate' && (instance.activity === 'stopping' || context.note.read() !== null))
    return hastenStop(instance, context, task.deadlineMs)
  return endInstance(instance, task.mode, context, task.deadlineMs)
}

/**
 * Stops the instance unless it is stopped and waits until its process has ended. An engine that was told to stop cannot
 * be told otherwise: who gives up, or whose deadline has passed, leaves it stopping.
 */
export async function endInstance(
  instance: Instance,
  mode: StopMode,
  context: Pick<TaskContext, 'registry' | 'log' | 'signal'>,
  deadlineMs = STOP_BOUND_MS,
): Promise<{ stoppedMs: number }> {
  const begun = performance.now()
  context.signal.throwIfAborted()
  instance.activity = 'stopping'
  try {
    context.registry.update(instance.instanceId, { expected: 'stopped' })
    await instance.look()
    const postmaster = instance.postmaster
    if (postmaster) {
      context.log(`stopping the engine (${mode})`)
      process.kill(postmaster.pid, signals[mode])
      await waitForEnd(postmaster, context, deadlineMs)
      context.log(`stopped after ${Math.round(performance.now() - begun)} ms`)
    } else context.log('it is not running')
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
async function hastenStop(
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
    process.kill(postmaster.pid, signals.immediate)
    await waitForEnd(postmaster, context, deadlineMs)
  } else context.log('it has ended by itself')
  return { stoppedMs: performance.now() - begun }
}

async function waitForEnd(
  postmaster: Pick<Postmaster, 'pid' | 'startTicks'>,
  context: Pick<TaskContext, 'signal'>,
  deadlineMs: number,
): Promise<void> {
  const ended = await waitFor(async () => !postmasterRuns(postmaster), {
    boundMs: deadlineMs,
    everyMs: 20,
    signal: context.signal,
  })
  if (ended === null)
    throw fault('instance.not_stopped', 'the engine did not end in time', {
      detail: `It was waited for ${Math.round(deadlineMs / 1_000)} s and goes on stopping.`,
      hint: 'Stop it with mode "immediate".',
    })
}
