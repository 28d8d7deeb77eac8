import { ensureExtension } from '../../engine/flashback/extension'
import { requireRunning } from '../../engine/process/require-running'
import flashbackTableSql from '../../engine/sql/flashback-table.sql'
import type { TaskBody } from '../runner/task'
import { keepingWords } from './keep-words'
import { madeTable } from './made-table'
import { provenTransaction } from './proven-transaction'
import { refuseMoment } from './refuse-moment'
import { freeResultName } from './result-name'

/** Makes a table with the rows of a moment, in one transaction; a run after a kill finds it, or nothing of it. */
export const flashbackTable: TaskBody<'flashback-table'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const { database, table, at } = task
  return keepingWords(task, context, () =>
    provenTransaction(instance.address, database, context, {
      prepare: (client) => ensureExtension(client, database),
      async work(client, functions) {
        await refuseMoment(client, functions, { table, at })
        const name = task.resultName ?? (await freeResultName(client, table))
        context.log(`making table "${name}"`)
        const { rows } = await client.query<{ result: number; rows: number }>(
          functions.within(flashbackTableSql),
          [table, at, name],
        )
        return madeTable(client, rows[0])
      },
    }),
  )
}
