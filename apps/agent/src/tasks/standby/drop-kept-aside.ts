import { dropKeptAside } from '../../engine/wal/kept-aside'
import type { TaskBody } from '../runner/task'

/** Removes what was kept aside. */
export const dropAside: TaskBody<'drop-kept-aside'> = async (task, context) => {
  const dropped = await dropKeptAside(context.instances.get(task.instanceId), task.name)
  context.log(dropped ? `removed "${task.name}"` : `nothing is kept aside under the name "${task.name}"`)
  return { dropped }
}
