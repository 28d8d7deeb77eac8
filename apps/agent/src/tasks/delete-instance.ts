import { existsSync, readdirSync, renameSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { syncDirectory } from '../host/durable-files'
import { endInstance } from './stop-instance'
import type { TaskBody } from './task'

/** Stops the instance and removes its directory, or renames it. After the first irreversible act it is not given up. */
export const deleteInstance: TaskBody<'delete-instance'> = async (task, context) => {
  const { registry, instances, installation } = context
  const registered = registry.find(task.instanceId)
  const removed = join(installation.instancesDirectory, `.removed-${task.instanceId}`)
  // a run that was killed after it had forgotten the instance has only this left to do
  if (!registered) {
    if (existsSync(join(installation.instancesDirectory, task.instanceId)))
      throw fault('instance.not_registered', 'the instance has files here but is not registered', {
        detail: `Directory "${task.instanceId}" lies in "${installation.instancesDirectory}".`,
        hint: 'Make sure that no engine uses it, then remove the directory by hand.',
      })
    await rm(removed, { recursive: true, force: true })
    const name = readdirSync(installation.instancesDirectory).find(
      (entry) => entry.startsWith('kept-') && entry.endsWith(task.instanceId),
    )
    return {
      removed: name === undefined,
      keptDirectory: name ? join(installation.instancesDirectory, name) : null,
    }
  }
  if (task.confirmName !== registered.name)
    throw fault('instance.not_confirmed', 'the typed name is not the name of the instance', {
      detail: `The instance is named "${registered.name}", typed was "${task.confirmName}".`,
    })
  context.signal.throwIfAborted()
  const instance = instances.get(task.instanceId)
  await endInstance(instance, task.keepFiles ? 'fast' : 'immediate', context)
  registry.update(task.instanceId, { expected: 'deleting' })
  await instance.look()

  const kept = join(installation.instancesDirectory, `kept-${registered.name}-${task.instanceId}`)
  const destination = task.keepFiles ? kept : removed
  if (existsSync(instance.layout.directory)) {
    renameSync(instance.layout.directory, destination)
    syncDirectory(installation.instancesDirectory)
  }
  if (task.keepFiles) context.log(`its files are kept in ${kept}`)
  else {
    context.log('removing its files')
    await rm(removed, { recursive: true, force: true })
  }
  instances.remove(task.instanceId)
  return { removed: !task.keepFiles, keptDirectory: task.keepFiles ? kept : null }
}
