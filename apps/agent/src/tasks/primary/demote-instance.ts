import { fault, type Lsn, toFault } from '@floe/domain'
import {
  clearFence,
  readClusterSettings,
  readFence,
  removeStandbySignal,
  SENDER_TIMEOUT,
  standbySettings,
  writeClusterSettings,
  writeFence,
} from '../../engine/cluster/member-files'
import { cutSilentReceivers } from '../../engine/cluster/silent-receivers'
import { readControlFile, wasStandby } from '../../engine/directory/control-file'
import type { Instance } from '../../engine/instance'
import { withSecondCheckpoint } from '../../engine/page-repair/second-checkpoint'
import { findPostmaster } from '../../engine/process/postmaster'
import { newestTimeline } from '../../engine/wal/newest-timeline'
import { endOfEnded } from '../../engine/wal/wal-end'
import { isThere } from '../../host/tree'
import { reload } from '../instance/reload-instance'
import { makeReady } from '../instance/start-instance'
import { endInstance } from '../instance/stop-instance'
import type { TaskBody, TaskContext } from '../runner/task'

/** Writes a checkpoint now, so that the one at shutdown, which clients wait for, has little left to write. */
export const checkpointInstance: TaskBody<'checkpoint-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const begun = performance.now()
  await instance.connect(
    (client) => withSecondCheckpoint(() => client.query('checkpoint'), context.log),
    3_600_000,
  )
  const checkpointMs = performance.now() - begun
  context.log(`checkpoint after ${Math.round(checkpointMs)} ms`)
  return { checkpointMs }
}

const STOPPING_SENDER_TIMEOUT = '4s'
/** Clients wait until a demoted primary has ended; past this it is the primary again. */
const DEMOTE_BOUND_MS = 20_000

/** A demotion that was given up before it stopped anything leaves a primary as it was. */
async function keepServing(instance: Instance): Promise<void> {
  const settings = readClusterSettings(instance.layout)
  if (!settings.delete(SENDER_TIMEOUT)) return
  settings.delete('primary_conninfo')
  settings.delete('primary_slot_name')
  writeClusterSettings(instance.layout, settings, instance.user)
  await instance.connect((client) => reload(instance, client))
}

/** Fences a primary and stops it in order: its WAL, to the last record, reaches the standbys that stream before it ends. */
export const demoteInstance: TaskBody<'demote-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  context.signal.throwIfAborted()
  await instance.look()
  // one that is fenced is a later run's, and is being stopped
  const serves = instance.postmaster !== null && readFence(instance.layout) === null
  if (serves && task.candidate !== undefined) await cutSilentReceivers(instance, task.candidate, context)
  const { primary_conninfo: _conninfo, ...rest } = Object.fromEntries(readClusterSettings(instance.layout))
  const settings = standbySettings(task.upstream, instance.asking, new Map(Object.entries(rest)))
  // for one that falls silent from here on
  settings.set(SENDER_TIMEOUT, STOPPING_SENDER_TIMEOUT)
  writeClusterSettings(instance.layout, settings, instance.user)
  if (serves) await instance.connect((client) => reload(instance, client))
  writeFence(instance.layout, 'it was demoted in a switchover', instance.user)
  context.log('it can start as a standby only')
  const { stoppedMs } = await endInstance(instance, 'fast', context, DEMOTE_BOUND_MS)
  const control = await readControlFile(instance.enginePrefix, instance.layout.dataDirectory, instance.user)
  if (!control || !/^shut down/.test(control.clusterState))
    throw fault('demote.not_clean', 'the primary did not shut down in order', {
      detail: `Its control file says "${control?.clusterState ?? 'nothing'}".`,
      hint: 'Use a failover.',
    })
  context.log(`stopped; its last record is the checkpoint at ${control.checkpointLsn}`)
  return { shutdownLsn: control.checkpointLsn as Lsn, stoppedMs }
}

/** One that does not end in order by then is ended at once: clients have waited for long enough. */
const RESTORE_BOUND_MS = 2_000

/** Takes a demotion back: the primary it was. The caller knows that nobody else was promoted. */
export const restorePrimary: TaskBody<'restore-primary'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  if (readFence(instance.layout) === null && instance.postmaster) {
    await keepServing(instance)
    return { postmasterPid: instance.postmaster.pid }
  }
  try {
    await endInstance(instance, 'fast', context, RESTORE_BOUND_MS)
  } catch (error) {
    if (context.signal.aborted) throw error
    await endInstance(instance, 'immediate', context)
  }
  const settings = readClusterSettings(instance.layout)
  settings.delete('primary_conninfo')
  settings.delete('primary_slot_name')
  settings.delete(SENDER_TIMEOUT)
  writeClusterSettings(instance.layout, settings, instance.user)
  removeStandbySignal(instance.layout, instance.user)
  clearFence(instance.layout)
  context.log('it is the primary again')
  const { postmasterPid } = await makeReady(instance, context, { primary: task.primary })
  return { postmasterPid }
}

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
