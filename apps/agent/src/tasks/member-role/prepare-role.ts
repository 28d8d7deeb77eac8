import { randomBytes } from 'node:crypto'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { foreseeableLogin, newLogin } from '@floe/domain'
import { writePassFile } from '../../engine/cluster/member-files'
import type { TaskBody } from '../runner/task'

/**
 * Makes up the role that a member of an earlier version is to come as. Until it does, the agent reports the one it comes as,
 * so that no pg_hba.conf written meanwhile shuts it out.
 */
export const prepareRole: TaskBody<'prepare-role'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { registered, logins } = instance
  const former = foreseeableLogin('standby', registered.name)
  const password = registered.replicationPassword
  if (logins.replication !== former || password === undefined)
    return { role: logins.replication, former: null, verifier: null }
  const role =
    registered.replicationRole ?? newLogin('standby', registered.name, randomBytes(8).toString('hex'))
  context.registry.update(task.instanceId, { replicationRole: role, followsAs: former })
  writePassFile(instance.layout, [role, former], password, instance.user)
  return { role, former, verifier: scramVerifier(password) }
}
