import { tryChanges } from '../../engine/settings/check-queue'
import type { TaskBody } from '../runner/task'

/** What changes of an instance would do, each with its own refusal. */
export const trySettings: TaskBody<'try-settings'> = (task, { installation, signal, instances }) =>
  tryChanges(() => instances.get(task.instanceId), task.changes, {
    installation,
    signal,
    acrossCluster: task.acrossCluster,
  })
