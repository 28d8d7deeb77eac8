import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { scramVerifier } from '@floe/agent-contract'
import { fault, replicationRoleOf } from '@floe/domain'
import { writePassFile } from '../engine/cluster-files'
import { makeOuterDirectory, makeOwnedDirectory } from '../host/durable-files'
import { runCommand } from '../host/run-command'
import { registerInstance } from './create-instance'
import type { TaskBody, TaskContext } from './task'

/**
 * Registers an instance that is to be a copy, unless it is known, and sees to a password that it replicates with: made
 * here, kept here, and known elsewhere by its verifier only.
 */
export const prepareStandby: TaskBody<'prepare-standby'> = async (task, context) => {
  const known = context.registry.find(task.instanceId)
  if (known && known.name !== task.name)
    throw fault('instance.exists', `instance "${known.name}" already has this id`)
  const instance = known
    ? context.instances.get(task.instanceId)
    : await registerInstance(task, context, 'creating')
  const { layout } = instance
  makeOuterDirectory(context.installation.instancesDirectory, context.user)
  makeOuterDirectory(layout.directory, context.user)
  makeOwnedDirectory(layout.logDirectory, context.user)
  const password = instance.registered.replicationPassword ?? randomBytes(24).toString('base64url')
  context.registry.update(task.instanceId, { replicationPassword: password })
  writePassFile(layout, replicationRoleOf(task.name), password, context.user)
  context.log(`port ${instance.registered.port}, directory ${layout.directory}`)
  return {
    port: instance.registered.port,
    directory: layout.directory,
    engineVersion: await engineVersion(instance.enginePrefix, context),
    replicationVerifier: scramVerifier(password),
  }
}

/** `18.6`, as the binary itself says it. */
async function engineVersion(prefix: string, context: TaskContext): Promise<string> {
  const binary = join(prefix, 'bin', 'postgres')
  const r = existsSync(binary)
    ? await runCommand(binary, ['--version'], { user: context.user, timeoutMs: 10_000 })
    : null
  const version = /\(PostgreSQL\) (\S+)/.exec(r?.stdout ?? '')?.[1]
  if (!version)
    throw fault('engine.missing', `no engine in "${prefix}"`, { hint: 'Run "./floe up" on this host.' })
  return version
}
