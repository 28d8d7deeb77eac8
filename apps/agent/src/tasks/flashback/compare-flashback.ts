import { ensureExtension } from '../../engine/flashback/extension'
import { requireResult, tableOf } from '../../engine/flashback/results'
import { requireRunning } from '../../engine/process/require-running'
import type { TaskBody } from '../runner/task'
import { compareRows } from './compare-rows'
import { keepingWords } from './keep-words'
import { watched } from './watched-statement'

/** Compares a result with its table as it is now. Safe to run again: it changes nothing. */
export const compareFlashback: TaskBody<'compare-flashback'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const { instanceId, database } = task
  return keepingWords(task, context, () =>
    watched(instance.address, database, context, async (client) => {
      const functions = await ensureExtension(client, database)
      const found = await requireResult(client, functions, task)
      const of = { instanceId, database, relation: tableOf(found), at: null, result: task.result }
      return compareRows(client, functions, of, context)
    }),
  )
}
