import { fault, MISSING_LENGTH, MISSING_MAX } from '@floe/domain'
import type pg from 'pg'
import { ensureExtension } from '../../engine/flashback/extension'
import type { FlashbackFunctions } from '../../engine/flashback/functions'
import { requireRunning } from '../../engine/process/require-running'
import beforeDropSql from '../../engine/sql/flashback-before-drop.sql'
import lostOneSql from '../../engine/sql/flashback-lost-one.sql'
import freeNameSql from '../../engine/sql/free-name.sql'
import type { TaskBody, TaskOf } from '../runner/task'
import { keepingWords } from './keep-words'
import { madeTable } from './made-table'
import { provenTransaction } from './proven-transaction'
import { freeResultName } from './result-name'

type Lost = TaskOf<'flashback-dropped-table'>

/**
 * Makes a table with the rows of one that was dropped, truncated or rewritten, in one transaction; a run after a kill finds it, or
 * nothing of it.
 */
export const flashbackDroppedTable: TaskBody<'flashback-dropped-table'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const { database, table, lsn } = task
  return keepingWords(task, context, () =>
    provenTransaction(instance.address, database, context, {
      prepare: (client) => ensureExtension(client, database),
      async work(client, functions) {
        const name = await chooseName(client, functions, task)
        context.log(`making table "${name}"`)
        const missing = await hearMissing(client)
        const { rows } = await client.query<{ result: number; rows: number }>(
          functions.within(beforeDropSql),
          [table, lsn, name, task.resultSchema ?? null],
        )
        for (const words of missing) context.log(words)
        return { ...(await madeTable(client, rows[0])), missing: missing.slice(0, MISSING_MAX) }
      },
    }),
  )
}

/**
 * What the engine says that the table does not have any more, as it goes on: names, or what makes a piece that could not be made.
 * Why it could not is not heard: that may hold values of rows.
 */
async function hearMissing(client: pg.Client): Promise<readonly string[]> {
  const heard: string[] = []
  client.on('notice', ({ severity, message, detail, hint }) => {
    if (!message?.includes('is given back without')) return
    const more = severity === 'WARNING' ? hint : detail
    heard.push((more ? `${message}: ${more}` : message).slice(0, MISSING_LENGTH))
  })
  await client.query('set local client_min_messages = notice')
  return heard
}

/** The name that was asked for; else, where it was dropped, its former one if that is free in the schema where it goes. */
async function chooseName(
  client: pg.Client,
  functions: FlashbackFunctions,
  { table, lsn, resultName, resultSchema }: Lost,
): Promise<string> {
  const [lost] = (
    await client.query<{ schema: string; name: string; kind: string }>(functions.within(lostOneSql), [
      table,
      lsn,
    ])
  ).rows
  const schema = resultSchema ?? (lost?.kind === 'dropped' ? lost.schema : null)
  if (schema === null) return resultName ?? (await freeResultName(client, table))
  const wanted = lost?.kind === 'dropped' ? lost.name : `polar_flashback_${table}`
  const [free] = (
    await client.query<{ schema_exists: boolean; name: string }>(freeNameSql, [schema, wanted, table])
  ).rows
  if (!free?.schema_exists)
    throw fault('flashback.no_schema', `schema "${schema}" does not exist`, {
      ...(resultSchema ? {} : { detail: 'The table was in it.' }),
      hint: 'Name another one, or create it.',
    })
  return resultName ?? free.name
}
