import { foreseeableLogin, slotNameOf } from '@floe/domain'
import { letIn } from '../../engine/cluster/let-in'
import { retireForeseeable, retireMemberRole, withRolesLocked } from '../../engine/cluster/member-roles'
import { withPrimarySession } from '../../engine/cluster/primary-session'
import { dropSlot } from '../../engine/cluster/slots'
import { readUpstreamFacts } from '../../engine/cluster/upstream-facts'
import type { TaskBody } from '../runner/task'

/** Removes a member's slot and, unless it stays a member, its role and its lines. */
export const dismissStandby: TaskBody<'dismiss-standby'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const role = task.role ?? foreseeableLogin('standby', task.standbyName)
  return withPrimarySession(instance, async (client) => {
    const droppedSlot = await dropSlot(client, slotNameOf(task.standbyName))
    if (droppedSlot) context.log(`dropped slot "${slotNameOf(task.standbyName)}"`)
    const { inRecovery } = await readUpstreamFacts(client)
    if (!task.keepRole && !inRecovery)
      await withRolesLocked(client, async () => {
        await retireMemberRole(client, role, context.log)
        await retireForeseeable(client, task.standbyName, role, context)
      })
    if (task.roles) await letIn(instance, client, task.roles)
    return { droppedSlot }
  })
}
