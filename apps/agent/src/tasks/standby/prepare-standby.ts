import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { fault, foreseeableLogin, newLogin } from '@floe/domain'
import { writePassFile } from '../../engine/cluster/member-files'
import type { Instance } from '../../engine/instance'
import { makeOuterDirectory, makeOwnedDirectory } from '../../host/owned-files'
import { runCommand } from '../../host/run-command'
import { registerInstance } from '../instance/register-instance'
import type { TaskBody } from '../runner/task'

/**
 * Registers an instance that is to be a copy, unless it is known, and sees to a role and a password that it replicates
 * with: both made up and kept here; the password is known elsewhere by its verifier only.
 */
export const prepareStandby: TaskBody<'prepare-standby'> = async (task, context) => {
  const known = context.registry.find(task.instanceId)
  if (known && known.name !== task.name)
    throw fault('instance.exists', `instance "${known.name}" already has this id`)
  const instance = known
    ? context.instances.get(task.instanceId)
    : await registerInstance(task, context, 'creating')
  const { layout } = instance
  makeOuterDirectory(context.installation.instancesDirectory, instance.user)
  makeOuterDirectory(layout.directory, instance.user)
  makeOwnedDirectory(layout.logDirectory, instance.user)
  const password = instance.registered.replicationPassword ?? randomBytes(24).toString('base64url')
  const role =
    instance.registered.replicationRole ?? newLogin('standby', task.name, randomBytes(8).toString('hex'))
  context.registry.update(task.instanceId, { replicationPassword: password, replicationRole: role })
  writePassFile(layout, [role, foreseeableLogin('standby', task.name)], password, instance.user)
  context.log(`port ${instance.registered.port}, directory ${layout.directory}`)
  return {
    port: instance.registered.port,
    directory: layout.directory,
    engineVersion: await engineVersion(instance),
    replicationVerifier: scramVerifier(password),
    replicationRole: role,
  }
}

/** `18.6`, as the binary itself says it. */
async function engineVersion(instance: Instance): Promise<string> {
  const binary = join(instance.enginePrefix, 'bin', 'postgres')
  const r = existsSync(binary)
    ? await runCommand(binary, ['--version'], { user: instance.user, timeoutMs: 10_000 })
    : null
  const version = /\(PostgreSQL\) (\S+)/.exec(r?.stdout ?? '')?.[1]
  if (!version)
    throw fault('engine.missing', `no engine in "${instance.enginePrefix}"`, {
      hint: 'Run "./floe up" on this host.',
    })
  return version
}
