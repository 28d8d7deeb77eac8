import { readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { syncDirectory } from '@floe/host/replace-file'
import { removeRestorePlaces, restorePlacesIn } from '../../engine/restore/restore-place'
import { removeTrial } from '../../engine/settings/trial'
import { isThere, removeOuterDirectory } from '../../host/tree'
import type { TaskBody } from '../runner/task'
import { endInstance } from './end-instance'
import { forgetInstance } from './forget-instance'

/** Stops the instance and removes its directory, or renames it. After the first irreversible act it is not given up. */
export const deleteInstance: TaskBody<'delete-instance'> = async (task, context) => {
  const { registry, instances, installation } = context
  const registered = registry.find(task.instanceId)
  const removed = join(installation.instancesDirectory, `.removed-${task.instanceId}`)
  // a run that was killed after it had forgotten the instance has only this left to do
  if (!registered) {
    if (isThere(join(installation.instancesDirectory, task.instanceId)))
      throw fault('instance.not_registered', 'the instance has files here but is not registered', {
        detail: `Directory "${task.instanceId}" is in "${installation.instancesDirectory}".`,
        hint: 'Adopt the instance first: "./floe instance adopt" with its name. Where that is refused, make sure that no engine uses the directory, then remove it by hand.',
      })
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

  await removeTrial(instance.layout.directory, instance.user)
  const { directory } = instance.layout
  await removeRestorePlaces(
    directory,
    installation.socketDirectory,
    instance.user,
    restorePlacesIn(directory),
  )
  const kept = join(installation.instancesDirectory, `kept-${registered.name}-${task.instanceId}`)
  const destination = task.keepFiles ? kept : removed
  if (isThere(instance.layout.directory)) {
    renameSync(instance.layout.directory, destination)
    syncDirectory(installation.instancesDirectory)
  }
  if (task.keepFiles) context.log(`its files are kept in ${kept}`)
  else {
    context.log('removing its files')
    await removeOuterDirectory(removed, instance.user)
  }
  if (task.keepFiles) {
    await instance.removeSocket()
    // its user stays, because its files do
    instances.remove(task.instanceId)
  } else await forgetInstance(instance, context)
  return { removed: !task.keepFiles, keptDirectory: task.keepFiles ? kept : null }
}
