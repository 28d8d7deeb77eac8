import { fault } from '@floe/domain'
import { ensureExtension } from '../../engine/flashback/extension'
import { requireResult } from '../../engine/flashback/results'
import { requireRunning } from '../../engine/process/require-running'
import tableByNameSql from '../../engine/sql/table-by-name.sql'
import tableNamesSql from '../../engine/sql/table-names.sql'
import type { TaskBody } from '../runner/task'
import { watched } from './watched-statement'

/** Drops a result, and nothing that only has its name. Safe to run again: one that is not there is dropped. */
export const dropFlashback: TaskBody<'drop-flashback'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  return watched(instance.address, task.database, context, async (client) => {
    const there = await client.query(tableNamesSql, [[task.result]])
    if (there.rows.length === 0) return { dropped: false }
    const functions = await ensureExtension(client, task.database)
    const { schema, name } = await requireResult(client, functions, task)
    const target = `${client.escapeIdentifier(schema)}.${client.escapeIdentifier(name)}`
    await client.query('begin')
    // from here on the name stays with the table that has it
    await client.query(`LOCK TABLE ONLY ${target} IN ACCESS EXCLUSIVE MODE`)
    const [named] = (await client.query<{ oid: number }>(tableByNameSql, [schema, name])).rows
    if (named?.oid !== task.result)
      throw fault('flashback.other_table', `another table has taken the name "${task.resultName}"`)
    await client.query(`DROP TABLE ${target}`)
    await client.query('commit')
    return { dropped: true }
  })
}
