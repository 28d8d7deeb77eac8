import type { TaskBody } from '../runner/task'
import { makeReady } from './make-ready'

/** Starts an instance; one that is fenced or held back is refused, see makeReady. */
export const startInstance: TaskBody<'start-instance'> = (task, context) =>
  makeReady(context.instances.get(task.instanceId), context, { primary: task.primary })
