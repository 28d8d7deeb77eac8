import { ensureExtension } from '../../engine/flashback/extension'
import { requireRunning } from '../../engine/process/require-running'
import beforeDropSql from '../../engine/sql/flashback-before-drop.sql'
import type { TaskBody } from '../runner/task'
import { madeTable } from './made-table'
import { provenTransaction } from './proven-transaction'
import { freeResultName } from './result-name'

/** Makes a table with the rows of one that was dropped, in one transaction; a run after a kill finds it, or nothing of it. */
export const flashbackDroppedTable: TaskBody<'flashback-dropped-table'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const { database, table, lsn } = task
  return provenTransaction(instance.address, database, context, {
    prepare: (client) => ensureExtension(client, database),
    async work(client, functions) {
      const name = await freeResultName(client, table)
      context.log(`making table "${name}"`)
      const { rows } = await client.query<{ result: number; rows: number }>(functions.within(beforeDropSql), [
        table,
        lsn,
        name,
      ])
      return madeTable(client, rows[0])
    },
  })
}
