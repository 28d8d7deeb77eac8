import type { TaskBody } from '../runner/task'

/** From when on work without a commit is a stall: for the next sample, and kept for every later agent. */
export const setStallLength: TaskBody<'set-stall-length'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  instance.setStallLength(task.afterMs)
  return { stallAfterMs: instance.stallAfterMs }
}
