import type { TaskResult } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import { ensureExtension } from '../../engine/flashback/extension'
import { requireResult, tableOf } from '../../engine/flashback/results'
import { requireRunning } from '../../engine/process/require-running'
import swapSql from '../../engine/sql/flashback-swap.sql'
import tableByNameSql from '../../engine/sql/table-by-name.sql'
import type { TaskBody } from '../runner/task'
import { keepingWords } from './keep-words'
import { provenTransaction } from './proven-transaction'

type Swapped = TaskResult<'swap-flashback'>

/** Exchanges the rows of a result and its table, in one transaction and once: twice would be as if it had not been. */
export const swapFlashback: TaskBody<'swap-flashback'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const { database } = task
  return keepingWords(task, context, () =>
    provenTransaction(instance.address, database, context, {
      prepare: (client) => ensureExtension(client, database),
      async work(client, functions): Promise<Swapped> {
        const found = await requireResult(client, functions, task)
        const { rows } = await client.query<Omit<Swapped, 'result'>>(functions.within(swapSql), [
          task.result,
          tableOf(found),
        ])
        const [now] = (await client.query<{ oid: number }>(tableByNameSql, [found.schema, found.name])).rows
        if (!rows[0] || !now) throw fault('flashback.bad_answer', 'the engine did not say what it swapped')
        return { ...rows[0], result: now.oid }
      },
    }),
  )
}
