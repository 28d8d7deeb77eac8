import {
  clearFence,
  readClusterSettings,
  readFence,
  removeStandbySignal,
  SENDER_TIMEOUT,
  writeClusterSettings,
} from '../../engine/cluster/member-files'
import type { Instance } from '../../engine/instance'
import { reload } from '../../engine/process/reload'
import { endInstance } from '../instance/end-instance'
import { makeReady } from '../instance/make-ready'
import type { TaskBody } from '../runner/task'

/** A demotion that was given up before it stopped anything leaves a primary as it was. */
async function keepServing(instance: Instance): Promise<void> {
  const settings = readClusterSettings(instance.layout)
  if (!settings.delete(SENDER_TIMEOUT)) return
  settings.delete('primary_conninfo')
  settings.delete('primary_slot_name')
  writeClusterSettings(instance.layout, settings, instance.user)
  await instance.connect((client) => reload(instance, client))
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
