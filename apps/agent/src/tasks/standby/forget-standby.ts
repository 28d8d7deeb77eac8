import { join } from 'node:path'
import { removeUnfinished } from '../../engine/creation/initialise'
import { isThere, removeOuterDirectory } from '../../host/tree'
import { forgetInstance } from '../instance/forget-instance'
import type { TaskBody } from '../runner/task'

/** Gives up an instance that never got a data directory; one that has one is left alone. Forgotten: nothing of it is here. */
export const forgetStandby: TaskBody<'forget-standby'> = async (task, context) => {
  if (!context.registry.find(task.instanceId))
    return { forgotten: !isThere(join(context.installation.instancesDirectory, task.instanceId)) }
  const instance = context.instances.get(task.instanceId)
  await removeUnfinished(instance.layout, instance.user)
  if (isThere(instance.layout.dataDirectory)) return { forgotten: false }
  await removeOuterDirectory(instance.layout.directory, instance.user)
  await forgetInstance(instance, context)
  context.log('nothing of it is left on this host')
  return { forgotten: true }
}
