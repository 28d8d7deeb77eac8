import { serveTls } from '../../engine/access/serve-tls'
import { letIn } from '../../engine/cluster/let-in'
import { defineMemberRole, withRolesLocked } from '../../engine/cluster/member-roles'
import { refuseStandby, withPrimarySession } from '../../engine/cluster/primary-session'
import type { TaskBody } from '../runner/task'

/** Creates the roles that members are to come as, and lets them in beside those that they come as now. */
export const admitRoles: TaskBody<'admit-roles'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  return withPrimarySession(instance, async (client) => {
    await refuseStandby(instance, client)
    await serveTls(instance, client)
    await withRolesLocked(client, async () => {
      for (const { role, verifier } of task.logins) await defineMemberRole(client, role, verifier)
    })
    await letIn(instance, client, task.roles)
    for (const { role } of task.logins) context.log(`role "${role}" may replicate`)
    return {}
  })
}
