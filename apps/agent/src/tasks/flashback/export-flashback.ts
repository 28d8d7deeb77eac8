import { inDatabase } from '../../engine/flashback/database-session'
import { engineFault } from '../../engine/flashback/engine-fault'
import { requireFunctions } from '../../engine/flashback/functions'
import { requireResult } from '../../engine/flashback/results'
import { requireRunning } from '../../engine/process/require-running'
import type { TaskBody } from '../runner/task'

/** Lets the rows of a result be read for a while. Nothing is read yet, and nothing kept but that it may be. */
export const exportFlashback: TaskBody<'export-flashback'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const { instanceId, database, result, resultName } = task
  try {
    await inDatabase(
      instance.address,
      database,
      async (client) => requireResult(client, await requireFunctions(client, database), task),
      10_000,
    )
  } catch (error) {
    throw engineFault(error)
  }
  const openUntil = context.flashbacks.downloads.open(context.operationId, {
    instanceId,
    address: instance.address,
    database,
    result,
    resultName,
  })
  return { openUntil }
}
