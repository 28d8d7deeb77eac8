import { randomBytes } from 'node:crypto'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { foreseeableLogin, newLogin } from '@floe/domain'
import { writeRepairPassFile } from '../../engine/cluster/member-files'
import { hasPageRepair, missingPageRepair } from '../../engine/page-repair/extension'
import { makeOuterDirectory } from '../../host/owned-files'
import type { TaskBody } from '../runner/task'

/** Sees to role and password that this member asks for pages with: made up and kept here, the password known elsewhere by its verifier. */
export const preparePageRepair: TaskBody<'prepare-page-repair'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { layout, registered } = instance
  if (!hasPageRepair(instance)) throw missingPageRepair(instance)
  makeOuterDirectory(layout.directory, instance.user)
  const password = registered.repairPassword ?? randomBytes(24).toString('base64url')
  const role = registered.repairRole ?? newLogin('repair', registered.name, randomBytes(8).toString('hex'))
  context.registry.update(task.instanceId, { repairPassword: password, repairRole: role })
  writeRepairPassFile(layout, [role, foreseeableLogin('repair', registered.name)], password, instance.user)
  return { repairVerifier: scramVerifier(password), repairRole: role }
}
