import { fault } from '@floe/domain'
import { requireRunning } from '../../engine/process/require-running'
import { readBack } from '../../engine/settings/into-force'
import { managedRecord } from '../../engine/settings/managed-file'
import type { TaskBody } from '../runner/task'

/** What a new connection says of settings that were changed: pg_settings and the lines they come from. */
export const confirmSettings: TaskBody<'confirm-settings'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const settings = await instance.connectPlainly((client) => readBack(client, instance, task.changes))
  const confirmed = task.changes.map((change) => {
    const setting = settings.get(change.name.toLowerCase())
    if (!setting)
      throw fault('setting.unknown', `setting "${change.name}" does not exist`, {
        detail: 'The instance’s own engine does not know it.',
      })
    if (setting.pendingRestart && !task.pendingAllowed)
      throw fault('setting.not_applied', `setting "${setting.name}" still waits for a restart`, {
        detail: `It is ${setting.shown}.`,
      })
    const newValue = setting.pendingRestart ? change.value : setting.shown
    context.log(
      `${setting.name} is ${setting.shown}${setting.pendingRestart ? '; the new value waits for a restart' : ''}`,
    )
    return { name: setting.name, newValue, pendingRestart: setting.pendingRestart }
  })
  return { confirmed, managed: managedRecord(instance.layout.managedFile) }
}
