import { keepPrimary } from '../../engine/cluster/keep-primary'
import { OBEY_BOUND_MS, waitUntilStreaming } from '../../engine/cluster/streaming'
import { writeUpstream } from '../../engine/cluster/upstream'
import { reload } from '../../engine/process/reload'
import type { TaskBody } from '../runner/task'

/** Has a running standby receive its WAL from another member. */
export const repointStandby: TaskBody<'repoint-standby'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  if (task.primary) keepPrimary(context.registry, task.instanceId, task.primary)
  writeUpstream(instance, task.upstream, context)
  await instance.look()
  if (!instance.postmaster) {
    context.log('it is not running; it follows when it starts')
    return { streaming: false }
  }
  await instance.connect((client) => reload(instance, client))
  if (!task.wait) return { streaming: false }
  await waitUntilStreaming(instance, task.upstream, context, OBEY_BOUND_MS)
  return { streaming: true }
}
