import { reload } from '../../engine/process/reload'
import { pendingRestart } from '../../engine/settings/pending-restart'
import type { TaskBody } from '../runner/task'

export const reloadInstance: TaskBody<'reload-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  return instance.connect(async (client) => {
    await reload(instance, client)
    context.log('the configuration was read again')
    return { pendingRestart: await pendingRestart(client) }
  })
}
