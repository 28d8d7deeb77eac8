import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { type Fault, FaultError, fault, LOOPBACK } from '@floe/domain'
import { initialiseDataDirectory, removeUnfinished } from '../../engine/directory/initialise'
import type { Instance } from '../../engine/instance'
import { checkSettings } from '../../engine/settings/check'
import { readManagedSettings, writeManagedSettings } from '../../engine/settings/managed-file'
import { trialPlace } from '../../engine/settings/trial-place'
import { makeOuterDirectory, makeOwnedDirectory } from '../../host/owned-files'
import { choosePort } from '../../host/ports'
import { removeOuterDirectory } from '../../host/tree'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'
import { forgetInstance } from './forget-instance'

/** Settings a new instance begins with, besides what the engine takes by itself. */
export const initialSettings = ({ hostAddress }: { hostAddress: string }) => ({
  listen_addresses: hostAddress === LOOPBACK ? 'localhost' : `localhost,${hostAddress}`,
  password_encryption: 'scram-sha-256',
})

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
  instance.acceptFiles(false)
  await instance.look()
  return {
    port: instance.registered.port,
    directory: instance.layout.directory,
    managed: Object.fromEntries(readManagedSettings(instance.layout.managedFile)),
  }
}

/** Port and password are decided once and kept before anything is made with them. */
export async function registerInstance(
  task: Pick<TaskOf<'create-instance'>, 'instanceId' | 'name'>,
  context: TaskContext,
  expected: 'creating',
): Promise<Instance> {
  const { installation, registry } = context
  if (!existsSync(`${installation.enginePrefix}/bin/postgres`))
    throw fault('engine.missing', `no engine in "${installation.enginePrefix}"`, {
      hint: 'Run "./floe up" on this host.',
    })
  const owned = new Set(registry.list().map((i) => i.port))
  const user = await context.users?.claim(task.instanceId)
  return context.instances.add({
    version: 1,
    instanceId: task.instanceId,
    name: task.name,
    port: await choosePort(installation.instancePorts, owned),
    enginePrefix: installation.enginePrefix,
    ...(user ? { user } : {}),
    expected,
    agentPassword: randomBytes(24).toString('base64url'),
    createdAt: Date.now(),
  })
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
  const checked = await checkSettings(
    {
      prefix: instance.enginePrefix,
      layout: instance.layout,
      user: instance.user,
      trial: trialPlace(context.installation, task.instanceId),
      client: null,
      signal: context.signal,
    },
    wishes,
  )
  const refused: Fault | undefined = checked.find((c) => c.fault)?.fault ?? undefined
  if (refused) throw new FaultError(refused)
  for (const { name, value } of wishes) settings.set(name.toLowerCase(), value)
  writeManagedSettings(instance.layout.managedFile, settings, instance.user)
}
