import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { scramVerifier } from '@floe/agent-contract'
import { type Fault, FaultError, fault, LOOPBACK } from '@floe/domain'
import { checkSettings } from '../engine/check-settings'
import { readManagedSettings, writeManagedSettings } from '../engine/configuration-file'
import { initialiseDataDirectory, removeUnfinished } from '../engine/initialise'
import type { Instance } from '../engine/instance'
import { makeOuterDirectory, makeOwnedDirectory } from '../host/durable-files'
import { choosePort } from '../host/ports'
import type { TaskBody, TaskContext, TaskOf } from './task'
import { trialsDirectory } from './trials-directory'

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
    makeOuterDirectory(context.installation.instancesDirectory, context.user)
    makeOuterDirectory(layout.directory, context.user)
    makeOwnedDirectory(layout.logDirectory, context.user)
    const settings = new Map(Object.entries(initialSettings(context.installation)))
    await initialiseDataDirectory({
      name: task.name,
      prefix: instance.enginePrefix,
      layout,
      user: context.user,
      settings,
      agentVerifier: scramVerifier(instance.registered.agentPassword),
      ownerVerifier: task.ownerPasswordVerifier,
      signal: context.signal,
      log: context.log,
    })
    await applyWishes(task, instance, context, settings)
  } catch (error) {
    // nobody has used it yet: a creation that failed or was given up leaves nothing behind
    removeUnfinished(instance.layout)
    await rm(instance.layout.directory, { recursive: true, force: true })
    context.instances.remove(task.instanceId)
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
  return context.instances.add({
    version: 1,
    instanceId: task.instanceId,
    name: task.name,
    port: await choosePort(installation.instancePorts, owned),
    enginePrefix: installation.enginePrefix,
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
      user: context.user,
      trialsDirectory: trialsDirectory(context.installation),
      client: null,
      signal: context.signal,
    },
    wishes,
  )
  const refused: Fault | undefined = checked.find((c) => c.fault)?.fault ?? undefined
  if (refused) throw new FaultError(refused)
  for (const { name, value } of wishes) settings.set(name.toLowerCase(), value)
  writeManagedSettings(instance.layout.managedFile, settings, context.user)
}
