import { ensureExtension } from '../../engine/flashback/extension'
import { requireRunning } from '../../engine/process/require-running'
import type { TaskBody } from '../runner/task'
import { compareRows } from './compare-rows'
import { keepingWords } from './keep-words'
import { refuseMoment } from './refuse-moment'
import { watched } from './watched-statement'

/** Counts what a flashback would bring back. Safe to run again: it changes nothing. */
export const previewFlashback: TaskBody<'preview-flashback'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const { database, table, at } = task
  return keepingWords(task, context, () =>
    watched(instance.address, database, context, async (client) => {
      const functions = await ensureExtension(client, database)
      await refuseMoment(client, functions, { table, at })
      return compareRows(
        client,
        functions,
        { instanceId: task.instanceId, database, relation: table, at, result: null },
        context,
      )
    }),
  )
}
