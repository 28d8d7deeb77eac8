import { fault, type StopMode } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type { Instance } from '../../engine/instance'
import { endProcesses } from '../../engine/process/end-processes'
import { type Postmaster, postmasterRuns } from '../../engine/process/postmaster'
import type { TaskContext } from '../runner/task'

/** A fast shutdown writes a checkpoint; on a slow disk with much memory that takes its time. */
export const STOP_BOUND_MS = 600_000
/** An engine that does not obey an immediate shutdown for this long stands still; it gives its own processes half of it. */
const IMMEDIATE_BOUND_MS = 10_000
/** What a postmaster that ended in order leaves, e.g. its logger and programs that sessions started, has this long to end. */
const LEFT_GRACE_MS = 2_000

/** What pg_ctl sends for each mode. */
const signals = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

/**
 * Stops the instance unless it is stopped and waits until every process of it has ended. An engine that was ordered to stop
 * cannot be ordered otherwise: who gives up, or whose deadline has passed, leaves it stopping. One that does not obey an
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

/** Signals the postmaster and waits for its end. False where one that is to end immediately has not after a moment. */
export async function tell(
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
