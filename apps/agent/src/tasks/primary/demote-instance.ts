import { fault, type Lsn } from '@floe/domain'
import {
  readClusterSettings,
  readFence,
  SENDER_TIMEOUT,
  standbySettings,
  writeClusterSettings,
  writeFence,
} from '../../engine/cluster/member-files'
import { cutSilentReceivers } from '../../engine/cluster/silent-receivers'
import { readControlFile } from '../../engine/directory/control-file'
import { reload } from '../../engine/process/reload'
import { endInstance } from '../instance/end-instance'
import type { TaskBody } from '../runner/task'

const STOPPING_SENDER_TIMEOUT = '4s'
/** Clients wait until a demoted primary has ended; past this it is the primary again. */
const DEMOTE_BOUND_MS = 20_000

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
