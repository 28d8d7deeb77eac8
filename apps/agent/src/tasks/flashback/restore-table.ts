import {
  FaultError,
  fault,
  millisecondsOf,
  qualifiedName,
  RestoredTable,
  readQualifiedName,
  restoredName,
} from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import { z } from 'zod'
import type { Instance } from '../../engine/instance'
import { type EngineAddress, sqlState } from '../../engine/process/connection'
import { requireRunning } from '../../engine/process/require-running'
import { askRestored, openRestored } from '../../engine/restore/ask-restored'
import { beforeBackup, examineBackup } from '../../engine/restore/base-backup'
import { copyBackup, refuseFull } from '../../engine/restore/copy-backup'
import { checkTarget, findMade, loadTable, type Target } from '../../engine/restore/load-table'
import { isoOf } from '../../engine/restore/recovery-log'
import { makeRestorePlace, removeRestorePlaces, restorePlacesIn } from '../../engine/restore/restore-place'
import { recoverTo } from '../../engine/restore/restored-engine'
import { readTableThen } from '../../engine/restore/table-then'
import { examineArchive, sourceOf } from '../../engine/restore/wal-archive'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'

/** Kept just before the commit: a run after a kill finds out by it whether that took place. */
const Note = z.object({ xid: z.string(), timeline: z.string(), oid: z.number(), result: RestoredTable })

/** A session whose agent was killed ends within this time. */
const ABANDONED_MS = 60_000

/**
 * Restores a base backup and a WAL archive to a moment, in an engine of its own beside the instance, and copies one table
 * out. All of it is read and run as the instance's user; the instance gets a new table and nothing else. What a cancel, a
 * failure or a kill leaves of it is removed, the engine first.
 */
export const restoreTable: TaskBody<'restore-table'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { directory } = instance.layout
  const { socketDirectory: sockets } = context.installation
  await removeRestorePlaces(directory, sockets, instance.user, restorePlacesIn(directory))
  // a host that has just come up again starts its instances first
  if (context.resumed)
    await waitFor(async () => instance.state === 'running', {
      boundMs: ABANDONED_MS,
      everyMs: 100,
      signal: context.signal,
    })
  await requireRunning(instance)
  const address = { ...instance.address, database: task.database }
  const { schema, name } = readQualifiedName(task.tableName)
  const target = { schema, table: name, result: task.resultName ?? restoredName(name) }
  const made = await inDatabase(task.database, () => madeBefore(address, target, context))
  if (made) return made
  if (millisecondsOf(task.at) > Date.now())
    throw fault('restore.in_future', 'the moment lies in the future', { hint: 'Name one that has passed.' })
  await inDatabase(task.database, () => checkTarget(address, target))
  return restore(task, instance, target, address, context)
}

/** The result of an earlier run that was killed when its transaction had committed. */
async function madeBefore(
  address: EngineAddress,
  target: Target,
  context: TaskContext,
): Promise<RestoredTable | null> {
  const note = Note.safeParse(context.note.read())
  if (!note.success) return null
  const found = await waitFor(
    async () => {
      const state = await findMade(address, note.data, target)
      return state === 'in progress' ? null : state
    },
    { boundMs: ABANDONED_MS, everyMs: 200, signal: context.signal },
  )
  if (found === null)
    throw fault('restore.abandoned', 'an earlier run of this restore has not ended yet', {
      hint: 'Its session ends when the server notices that its client is gone. Try again.',
    })
  if (found === 'none') return null
  context.log('the table had been made before the agent was restarted')
  return note.data.result
}

async function restore(
  task: TaskOf<'restore-table'>,
  instance: Instance,
  target: Target,
  address: EngineAddress,
  context: TaskContext,
): Promise<RestoredTable> {
  const { user, enginePrefix: prefix, layout } = instance
  const { socketDirectory: sockets } = context.installation
  context.say('checking the base backup and the WAL archive')
  const archive = await examineArchive(user, task.walDirectory, context.signal)
  const backup = await examineBackup(
    task.backupDirectory,
    task.at,
    { prefix, user, dataDirectory: layout.dataDirectory },
    context,
  )
  for (const warning of backup.warnings) context.log(warning)
  context.log(
    backup.control.dataChecksums
      ? 'the backup has data checksums: pages that are read are verified'
      : 'the backup has no data checksums: a damaged page may not be noticed',
  )
  const place = makeRestorePlace(layout.directory, sockets, user)
  try {
    context.say('copying the base backup')
    await copyBackup(backup, place, user, context)
    context.log(`replaying WAL to ${task.at}`)
    const engine = await recoverTo(
      { prefix, user, place, backup, source: sourceOf(archive), target: { kind: 'time', at: task.at } },
      context,
    )
    try {
      const session = await openRestored(engine, task.database, context.signal)
      const reached = await askRestored(
        session,
        'select pg_last_xact_replay_timestamp();',
        {},
        context.signal,
      )
      const reachedAt = isoOf(reached.stdout.trim())
      // without a transaction of after its begin, what lies in its files may be newer than the moment
      if (reachedAt === null && (backup.begunBy === null || millisecondsOf(task.at) < backup.begunBy))
        throw beforeBackup(backup.begunBy)
      context.log(`restored: the newest transaction in it ended at ${reachedAt ?? 'an unknown time'}`)
      const then = await readTableThen(session, { schema: target.schema, name: target.table }, context.signal)
      refuseFull(place.directory, then.bytes, 'for the table')
      context.log(`copying table ${task.tableName}`)
      const result = (loaded: { rows: number; bytes: number; warnings: string[] }): RestoredTable => ({
        ...loaded,
        resultName: qualifiedName(target.schema, target.result),
        reachedAt,
        warnings: [...backup.warnings, ...loaded.warnings],
      })
      const loaded = await loadTable(
        address,
        { then, session, target, at: task.at },
        {
          ...context,
          beforeCommit: ({ loaded, ...made }) => context.note.write({ ...made, result: result(loaded) }),
        },
      )
      for (const warning of loaded.warnings) context.log(warning)
      return result(loaded)
    } catch (error) {
      // the commit may have taken place though its answer did not come
      const made = await madeBefore(address, target, context).catch(() => null)
      if (made) return made
      throw error
    } finally {
      await engine.end()
    }
  } finally {
    context.say('removing the restored copy')
    await removeRestorePlaces(layout.directory, sockets, user, restorePlacesIn(layout.directory)).catch(
      (error: unknown) => context.log(error instanceof Error ? error.message : String(error)),
    )
  }
}

async function inDatabase<T>(database: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof FaultError) throw error
    // 3D000: invalid_catalog_name
    if (sqlState(error) === '3D000')
      throw fault('database.not_found', `database "${database}" does not exist`, { cause: error })
    throw fault('instance.no_connection', 'could not connect to the instance', {
      detail: error instanceof Error ? error.message : String(error),
      cause: error,
    })
  }
}
