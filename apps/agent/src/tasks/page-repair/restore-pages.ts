import { join } from 'node:path'
import {
  COPY_RECORD_BYTES,
  compareLsn,
  fault,
  Lsn,
  type RestoredPages,
  type TornList,
  tornBlocks,
} from '@floe/domain'
import { dropRestoredPages, keepRestoredPages } from '../../engine/copies/restored-pages'
import { controlChecksum, refuseAwake, toldTornList } from '../../engine/copies/torn-list'
import { type ControlFile, readControlFile } from '../../engine/directory/control-file'
import type { Instance } from '../../engine/instance'
import { type BaseBackup, examineBackup } from '../../engine/restore/base-backup'
import { copyBackup, refuseFull } from '../../engine/restore/copy-backup'
import { lastRecord } from '../../engine/restore/last-record'
import { makeRestorePlace, removeRestorePlaces, restorePlacesIn } from '../../engine/restore/restore-place'
import { aheadOf, otherTimeline, recoverTo } from '../../engine/restore/restored-engine'
import { examineArchive, refuseGap, sourceOf } from '../../engine/restore/wal-archive'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'

/**
 * Restores a base backup beside a primary that is stopped, to the last record of the primary's WAL, and keeps pages of it. They
 * are then what those of another standby's disk are (R21 of the engine's page_repair): all changes before the restored
 * engine's last restartpoint, and none after the primary's end. All is read and run as the instance's user; the primary's own
 * files stay as they are.
 */
export const restorePages: TaskBody<'restore-pages'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { user, layout } = instance
  const { socketDirectory: sockets } = context.installation
  const clean = () => removeRestorePlaces(layout.directory, sockets, user, restorePlacesIn(layout.directory))
  await clean()
  await dropRestoredPages(instance)
  const list = listOf(instance, task)
  const blocks = tornBlocks(task)
  if (blocks === null) throw fault('recover.no_list', 'the list of blocks does not name as many as it counts')
  try {
    const result = await restore(task, instance, list, context)
    context.say('keeping the pages')
    await keepRestoredPages(instance, result.dataDirectory, blocks, context)
    listOf(instance, task)
    context.log(`${blocks.length.toLocaleString('en-US')} pages of the restored backup are kept`)
    return { redo: result.redo, blocks: blocks.length, warnings: result.warnings }
  } catch (error) {
    await dropRestoredPages(instance)
    throw error
  } finally {
    context.say('removing the restored copy')
    await clean().catch((error: unknown) =>
      context.log(error instanceof Error ? error.message : String(error)),
    )
  }
}

/** The primary's own list, while the primary is stopped and has not been started since. */
function listOf(instance: Instance, { control }: TaskOf<'restore-pages'>): TornList {
  refuseAwake(instance)
  const { dataDirectory } = instance.layout
  const list = toldTornList(dataDirectory)
  if (list?.role === 'primary' && controlChecksum(dataDirectory) === control) return list
  throw fault('recover.started_meanwhile', `instance "${instance.registered.name}" was started meanwhile`, {
    detail: 'It has no list of torn pages, or its control file has changed since it was made.',
    hint: 'Recover the cluster again, which lists them again.',
  })
}

type Restored = { dataDirectory: string; redo: RestoredPages['redo']; warnings: string[] }

async function restore(
  task: TaskOf<'restore-pages'>,
  instance: Instance,
  list: TornList,
  context: TaskContext,
): Promise<Restored> {
  const { user, enginePrefix: prefix, layout } = instance
  const { signal } = context
  const own = { prefix, user, dataDirectory: layout.dataDirectory }
  context.say('checking the base backup and the WAL')
  const given = task.walDirectory === null ? [] : [await examineArchive(user, task.walDirectory, signal)]
  // the primary's own WAL comes first: it is what the pages have to fit
  const archives = [await examineArchive(user, join(layout.dataDirectory, 'pg_wal'), signal), ...given]
  const backup = await examineBackup(task.backupDirectory, null, own, context)
  refuseOtherHistory(backup, list)
  refuseGap(archives, backup, list.end)
  for (const warning of backup.warnings) context.log(warning)
  const beginLsn = await lastRecord(own, list, signal)
  const place = makeRestorePlace(layout.directory, context.installation.socketDirectory, user)
  context.say('copying the base backup')
  await copyBackup(backup, place, user, context)
  context.log(`replaying WAL to ${list.end}, the end of the primary’s`)
  const target = { kind: 'record', beginLsn, endLsn: list.end, timeline: list.timeline } as const
  const engine = await recoverTo(
    { prefix, user, place, backup, source: sourceOf(...archives), target },
    context,
  )
  await engine.end()
  const control = await readControlFile(prefix, place.dataDirectory, user)
  const redo = refuseElsewhere(control, task, list)
  refuseFull(place.directory, task.blocks * COPY_RECORD_BYTES, 'for the pages')
  return { dataDirectory: place.dataDirectory, redo, warnings: backup.warnings }
}

/** What its control file says before a byte is copied. */
function refuseOtherHistory({ control, firstWal }: BaseBackup, list: TornList): void {
  if (control.systemIdentifier !== list.systemIdentifier)
    throw fault('restore.other_system', 'the backup is of another system', {
      detail: `Its identifier is ${control.systemIdentifier}, that of the primary ${list.systemIdentifier}.`,
      hint: 'Name a base backup of this cluster.',
    })
  if (!control.dataChecksums)
    throw fault('restore.no_checksums', 'the backup has no data checksums', {
      detail: 'No page of it could be distinguished from a damaged one.',
      hint: 'Name a backup made since the cluster has them.',
    })
  if (control.walSegmentBytes !== list.segmentBytes)
    throw fault('restore.other_system', 'the backup’s WAL segments are of another size than the primary’s')
  const begun = firstWal === null ? control.timeline : Number.parseInt(firstWal.slice(0, 8), 16)
  const newest = Math.max(begun, control.timeline)
  if (newest > list.timeline) throw otherTimeline(list.timeline, `The backup is of timeline ${newest}.`)
  if (compareLsn(control.checkpointLsn, list.end) >= 0) throw aheadOf(list.end)
}

/** What its pages are good for: nothing where it has stopped elsewhere, or without a restartpoint that is late enough. */
function refuseElsewhere(
  control: ControlFile | null,
  { redo }: TaskOf<'restore-pages'>,
  list: TornList,
): RestoredPages['redo'] {
  const not = (detail: string) =>
    fault('restore.not_recovered', 'the backup was not recovered to the primary’s end', { detail })
  if (control === null || control.clusterState !== 'shut down in recovery')
    throw not(`Its control file says: ${control?.clusterState ?? 'nothing'}.`)
  if (control.systemIdentifier !== list.systemIdentifier) throw not('It is of another system.')
  if (compareLsn(control.minRecoveryLsn, list.end) > 0)
    throw not(`It has changes up to ${control.minRecoveryLsn}, the primary only up to ${list.end}.`)
  if (compareLsn(control.redoLsn, redo) < 0)
    throw not(
      `Its files have all changes only up to ${control.redoLsn}, and the standby recovers from ${redo}.`,
    )
  return Lsn.parse(control.redoLsn)
}
