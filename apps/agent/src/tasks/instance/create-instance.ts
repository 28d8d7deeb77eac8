import { scramVerifier } from '@floe/authority/scram-verifier'
import { fault } from '@floe/domain'
import { initialiseDataDirectory, removeUnfinished } from '../../engine/creation/initialise'
import type { Instance } from '../../engine/instance'
import { requireAccepted } from '../../engine/settings/check-instance'
import { initialSettings } from '../../engine/settings/initial'
import { managedRecord, writeManagedSettings } from '../../engine/settings/managed-file'
import { makeOuterDirectory, makeOwnedDirectory } from '../../host/owned-files'
import { removeOuterDirectory } from '../../host/tree'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'
import { forgetInstance } from './forget-instance'
import { registerInstance } from './register-instance'

/** Registers the instance, makes its data directory and writes its settings. Does not start it. */
export const createInstance: TaskBody<'create-instance'> = async (task, context) => {
  const known = context.registry.find(task.instanceId)
  if (known && known.expected !== 'creating') {
    if (known.name !== task.name)
      throw fault('instance.exists', `instance "${known.name}" already has this id`)
    const { layout } = context.instances.get(task.instanceId)
    return { port: known.port, directory: layout.directory }
  }
  const instance = known
    ? context.instances.get(task.instanceId)
    : await registerInstance(task, context, 'creating')
  try {
    context.log(`port ${instance.registered.port}, directory ${instance.layout.directory}`)
    const { layout } = instance
    makeOuterDirectory(context.installation.instancesDirectory, instance.user)
    makeOuterDirectory(layout.directory, instance.user)
    makeOwnedDirectory(layout.logDirectory, instance.user)
    const settings = new Map(Object.entries(initialSettings(context.installation)))
    await initialiseDataDirectory({
      name: task.name,
      prefix: instance.enginePrefix,
      layout,
      user: instance.user,
      settings,
      agentVerifier: scramVerifier(instance.registered.agentPassword),
      ownerVerifier: task.ownerPasswordVerifier,
      signal: context.signal,
      log: context.log,
    })
    await applyWishes(task, instance, context, settings)
  } catch (error) {
    // nobody has used it yet: a creation that failed or was given up leaves nothing behind
    await removeUnfinished(instance.layout, instance.user)
    await removeOuterDirectory(instance.layout.directory, instance.user)
    await forgetInstance(instance, context)
    throw error
  }
  context.registry.update(task.instanceId, { expected: 'stopped' })
  instance.files.accept(false)
  await instance.look()
  return {
    port: instance.registered.port,
    directory: instance.layout.directory,
    managed: managedRecord(instance.layout.managedFile),
  }
}

/** The person's own settings, checked by the binary before they are written. */
async function applyWishes(
  task: TaskOf<'create-instance'>,
  instance: Instance,
  context: TaskContext,
  settings: Map<string, string>,
): Promise<void> {
  const wishes = Object.entries(task.settings).map(([name, value]) => ({ name, value }))
  if (wishes.length === 0) return
  context.log(`checking ${wishes.length} settings`)
  await requireAccepted(instance, null, wishes, context)
  for (const { name, value } of wishes) settings.set(name.toLowerCase(), value)
  writeManagedSettings(instance.layout.managedFile, settings, instance.user)
}
