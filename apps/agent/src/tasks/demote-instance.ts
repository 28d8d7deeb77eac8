import { fault, type Lsn, toFault } from '@floe/domain'
import {
  clearFence,
  readClusterSettings,
  readFence,
  removeStandbySignal,
  standbySettings,
  writeClusterSettings,
  writeFence,
} from '../engine/cluster-files'
import { readControlFile, wasStandby } from '../engine/control-file'
import type { Instance } from '../engine/instance'
import { withSecondCheckpoint } from '../engine/second-checkpoint'
import { endOfWal } from './compare-histories'
import { makeReady } from './start-instance'
import { endInstance } from './stop-instance'
import type { TaskBody, TaskContext } from './task'

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

/** Fences a primary and stops it in order: its WAL, to the last record, reaches the standbys that stream before it ends. */
export const demoteInstance: TaskBody<'demote-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  context.signal.throwIfAborted()
  const { primary_conninfo: _conninfo, ...rest } = Object.fromEntries(readClusterSettings(instance.layout))
  writeClusterSettings(
    instance.layout,
    standbySettings(task.upstream, instance.asking, new Map(Object.entries(rest))),
    context.user,
  )
  writeFence(instance.layout, 'it was demoted in a switchover', context.user)
  context.log('it can start as a standby only')
  const { stoppedMs } = await endInstance(instance, 'fast', context)
  const control = await readControlFile(instance.enginePrefix, instance.layout.dataDirectory, context.user)
  if (!control || !/^shut down/.test(control.clusterState))
    throw fault('demote.not_clean', 'the primary did not shut down in order', {
      detail: `Its control file says "${control?.clusterState ?? 'nothing'}".`,
      hint: 'Use a failover.',
    })
  context.log(`stopped; its last record is the checkpoint at ${control.checkpointLsn}`)
  return { shutdownLsn: control.checkpointLsn as Lsn, stoppedMs }
}

/** Takes a demotion back: the primary it was. The caller knows that nobody else was promoted. */
export const restorePrimary: TaskBody<'restore-primary'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  if (readFence(instance.layout) === null && instance.postmaster)
    return { postmasterPid: instance.postmaster.pid }
  await endInstance(instance, 'fast', context)
  const settings = readClusterSettings(instance.layout)
  settings.delete('primary_conninfo')
  settings.delete('primary_slot_name')
  writeClusterSettings(instance.layout, settings, context.user)
  removeStandbySignal(instance.layout)
  clearFence(instance.layout)
  context.log('it is the primary again')
  const { postmasterPid } = await makeReady(instance, context)
  return { postmasterPid }
}

/** Ends an instance at once and keeps it from being a primary; then looks where its WAL ended. */
export const fenceInstance: TaskBody<'fence-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  const wasRunning = instance.postmaster !== null
  writeClusterSettings(
    instance.layout,
    standbySettings(null, instance.asking, readClusterSettings(instance.layout)),
    context.user,
  )
  writeFence(instance.layout, task.reason, context.user)
  context.log('it can start as a standby only, and not through Floe until it is rejoined')
  await endFenced(instance, context)
  const endLsn = await endOfWal(instance, context).catch(() => null)
  context.log(endLsn ? `its WAL ends at ${endLsn}` : 'where its WAL ends could not be read')
  return { endLsn, wasRunning }
}

/** A standby that takes its time may be ended at once after all. */
const STANDBY_END_BOUND_MS = 90_000

/**
 * A primary is ended at once, so that it acknowledges nothing more. A standby takes no write: it is stopped in order, and
 * its control file then says that it was a standby when it ended, which pg_rewind needs to know.
 */
async function endFenced(instance: Instance, context: TaskContext): Promise<void> {
  const control = await readControlFile(instance.enginePrefix, instance.layout.dataDirectory, context.user)
  if (control && wasStandby(control))
    try {
      await endInstance(instance, 'fast', context, STANDBY_END_BOUND_MS)
      return
    } catch (error) {
      if (context.signal.aborted) throw error
      context.log(toFault(error).message)
    }
  await endInstance(instance, 'immediate', context)
}
