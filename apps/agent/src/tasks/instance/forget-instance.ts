import type { Instance } from '../../engine/instance'
import type { TaskContext } from '../runner/task'

/** Forgets an instance whose files are gone, and ends its user with all that still runs as it. Safe to run twice. */
export async function forgetInstance(instance: Instance, context: TaskContext): Promise<void> {
  const { user } = instance.registered
  await instance.removeSocket()
  // first the user: a run that is killed between finds the instance again, and with it whose user is left
  if (user) await context.users?.release(instance.instanceId, user)
  context.instances.remove(instance.instanceId)
}
