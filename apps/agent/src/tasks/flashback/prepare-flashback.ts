import { ensureExtension } from '../../engine/flashback/extension'
import { requireRunning } from '../../engine/process/require-running'
import type { TaskBody } from '../runner/task'
import { watched } from './watched-statement'

/** Installs or updates the extension in a database; safe to run again: then it is there. */
export const prepareFlashback: TaskBody<'prepare-flashback'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const { version, schema } = await watched(instance.address, task.database, context, (client) =>
    ensureExtension(client, task.database),
  )
  return { version, schema }
}
