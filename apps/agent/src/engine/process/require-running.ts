import { fault } from '@floe/domain'
import type { Instance } from '../instance'

/** The refusal of what only a running instance can do. */
export const notRunning = (instance: Instance) =>
  fault('instance.not_running', `instance "${instance.registered.name}" is not running`, {
    hint: 'Start it first.',
  })

/** Looks at the instance; throws `instance.not_running` where it does not run. */
export async function requireRunning(instance: Instance): Promise<void> {
  await instance.look()
  if (!instance.postmaster) throw notRunning(instance)
}
