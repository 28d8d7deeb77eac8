import { requireRunning } from '../../engine/process/require-running'
import { requireAccepted } from '../../engine/settings/check-instance'
import { managedRecord } from '../../engine/settings/managed-file'
import { pendingRestart } from '../../engine/settings/pending-restart'
import type { TaskBody } from '../runner/task'

/** What changes would do on this member of a cluster; nothing is changed. */
export const checkSettings: TaskBody<'check-settings'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  return instance.connect(async (client) => {
    const { installation, signal } = context
    const asking = { installation, signal, acrossCluster: true }
    const checked = await requireAccepted(instance, client, task.changes, asking)
    return {
      checked: checked.map(({ name, impact, oldValue, oldNumber, newNumber }) => ({
        name,
        impact,
        oldValue,
        oldNumber,
        newNumber,
      })),
      managed: managedRecord(instance.layout.managedFile),
      pendingRestart: await pendingRestart(client),
    }
  }, 30_000)
}
