import type { TaskResult } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import type pg from 'pg'
import { ensureExtension } from '../../engine/flashback/extension'
import type { FlashbackFunctions } from '../../engine/flashback/functions'
import { requireResult, tableOf } from '../../engine/flashback/results'
import { requireRunning } from '../../engine/process/require-running'
import mergeSql from '../../engine/sql/flashback-merge.sql'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'
import { keepingWords, keepWords } from './keep-words'
import { provenTransaction } from './proven-transaction'
import { watched } from './watched-statement'

type Merge = TaskOf<'merge-flashback'>
type Row = TaskResult<'merge-flashback'> & { conflict_example: string | null }

/**
 * Puts rows of a result back into its table. The transaction is noted before its commit, so that none is merged twice; a dry run
 * counts what it would do and is rolled back. What the engine says of a conflict has values of rows: it stays in memory.
 */
export const mergeFlashback: TaskBody<'merge-flashback'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const { database } = task
  return keepingWords(task, context, async () => {
    if (!task.dryRun)
      return provenTransaction(instance.address, database, context, {
        prepare: (client) => ensureExtension(client, database),
        work: (client, functions) => merge(client, functions, task, context),
      })
    return watched(instance.address, database, context, async (client) => {
      const functions = await ensureExtension(client, database)
      await client.query('begin')
      const counts = await merge(client, functions, task, context)
      await client.query('rollback')
      return counts
    })
  })
}

async function merge(
  client: pg.Client,
  functions: FlashbackFunctions,
  task: Merge,
  context: TaskContext,
): Promise<TaskResult<'merge-flashback'>> {
  const relation = tableOf(await requireResult(client, functions, task))
  const { expected } = task
  const { rows } = await client.query<Row>(functions.within(mergeSql), [
    task.result,
    relation,
    task.insertMissing,
    task.restoreChanged,
    task.deleteAdded,
    selectedKeys(task, relation, context),
    expected?.inserted ?? null,
    expected?.restored ?? null,
    expected?.deleted ?? null,
    task.dryRun,
    task.selection && 'condition' in task.selection ? task.selection.condition : null,
  ])
  const [row] = rows
  if (!row) throw fault('flashback.bad_answer', 'the engine did not count the rows of the merge')
  const { conflict_example, ...counts } = row
  if (conflict_example !== null) keepWords(task, context, conflict_example)
  return counts
}

/** Keys of the samples that a person has selected; null: all rows. */
function selectedKeys({ selection, instanceId, database }: Merge, relation: number, context: TaskContext) {
  if (selection === null || 'condition' in selection) return null
  const kept = context.flashbacks.rows.get(selection.comparison)
  if (kept.instanceId !== instanceId || kept.database !== database || kept.relation !== relation)
    throw fault('flashback.selection', 'the rows were selected in a comparison of another table')
  return selection.selected.map((index) => {
    const key = kept.samples[index]?.key
    if (!key)
      throw fault('flashback.selection', 'a selected row cannot be distinguished from others', {
        detail: kept.keyColumns === null ? 'The table has no key.' : `There is no sample ${index}.`,
      })
    return key
  })
}
