import { makeReady } from './start-instance'
import { endInstance } from './stop-instance'
import type { TaskBody } from './task'

/** Stops and starts it. Run again after a kill, it sees by the postmaster's start whether the stop was done already. */
export const restartInstance: TaskBody<'restart-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  context.signal.throwIfAborted()
  await instance.look()
  const restarted = instance.postmaster !== null && instance.postmaster.startedAt > context.startedAt
  if (restarted) context.log('it has been restarted already')
  else await endInstance(instance, task.mode, context)
  return makeReady(instance, context)
}
