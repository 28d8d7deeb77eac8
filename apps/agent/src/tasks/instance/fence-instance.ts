import { fault, toFault } from '@floe/domain'
import {
  readClusterSettings,
  readFence,
  standbySettings,
  writeClusterSettings,
  writeFence,
} from '../../engine/cluster/member-files'
import { readControlFile, wasStandby } from '../../engine/directory/control-file'
import type { Instance } from '../../engine/instance'
import { findPostmaster } from '../../engine/process/postmaster'
import { newestTimeline } from '../../engine/wal/newest-timeline'
import { endOfEnded } from '../../engine/wal/wal-end'
import { isThere } from '../../host/tree'
import type { TaskBody, TaskContext } from '../runner/task'
import { endInstance } from './end-instance'

/** Ends an instance at once and keeps it from being a primary; then looks where its WAL ended. */
export const fenceInstance: TaskBody<'fence-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  await refuseNewer(instance, task.timeline ?? null)
  const wasRunning = instance.works()
  // one whose data directory was taken away runs all the same
  if (isThere(instance.layout.dataDirectory))
    writeClusterSettings(
      instance.layout,
      standbySettings(null, instance.asking, readClusterSettings(instance.layout)),
      instance.user,
    )
  writeFence(instance.layout, task.reason, instance.user)
  context.log('it can start as a standby only, and not through Floe until it is rejoined')
  await endFenced(instance, context)
  const end = await endOfEnded(instance, context).catch(() => null)
  context.log(
    end ? `its WAL ends at ${end.lsn} on timeline ${end.timeline}` : 'where its WAL ends could not be read',
  )
  return {
    endLsn: end?.lsn ?? null,
    timeline: end?.timeline ?? null,
    ancestors: end?.ancestors ?? null,
    wasRunning,
  }
}

/** Who is on a later timeline than the order is about was promoted since: another order's primary, and not this one's to end. */
async function refuseNewer(instance: Instance, ordered: number | null): Promise<void> {
  // what is fenced already was ended before, whatever is asked again
  if (ordered === null || (readFence(instance.layout) !== null && !instance.works())) return
  const timeline = await newestTimeline(instance)
  if (timeline === null || timeline <= ordered) return
  throw fault('fence.newer_timeline', `instance "${instance.registered.name}" is not the one to be fenced`, {
    detail: `The order is about timeline ${ordered} at most; "${instance.registered.name}" is on timeline ${timeline}: it was promoted since.`,
    hint: 'Find out which member is the primary by right before any of them is ended.',
  })
}

/** A standby that takes its time may be ended at once after all. */
const STANDBY_END_BOUND_MS = 90_000
/** Clients wait for another primary; what does not obey by then is killed. It recovers as after any immediate stop. */
const PRIMARY_END_BOUND_MS = 3_000

/**
 * A primary is ended at once, so that it acknowledges nothing more. A standby takes no write: it is stopped in order, and
 * its control file then says that it was a standby when it ended, which pg_rewind needs to know.
 */
async function endFenced(instance: Instance, context: TaskContext): Promise<void> {
  const control = await readControlFile(instance.enginePrefix, instance.layout.dataDirectory, instance.user)
  // what lies there may be another's control file than that of the engine that runs
  const itsOwn = !instance.works() || findPostmaster(instance.layout, instance.user) !== null
  if (control && wasStandby(control) && itsOwn)
    try {
      await endInstance(instance, 'fast', context, STANDBY_END_BOUND_MS, true)
      return
    } catch (error) {
      if (context.signal.aborted) throw error
      context.log(toFault(error).message)
    }
  await endInstance(instance, 'immediate', context, PRIMARY_END_BOUND_MS, true)
}
