import { foreseeableLogin, isForeseeable } from '@floe/domain'
import type pg from 'pg'
import {
  defineMemberRole,
  formerRepairRoles,
  retireFormerGroup,
  retireMemberRole,
  roleExists,
  withRolesLocked,
} from '../../engine/cluster/member-roles'
import { refuseStandby, withPrimarySession } from '../../engine/cluster/primary-session'
import { hasPageRepair, missingPageRepair } from '../../engine/page-repair/extension'
import type { TaskBody, TaskContext } from '../runner/task'

/** Extension and one role for each member, on the primary; roles of who is no member any more go. */
export const admitPageRepair: TaskBody<'admit-page-repair'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  if (!hasPageRepair(instance)) throw missingPageRepair(instance)
  return withPrimarySession(instance, async (client) => {
    await refuseStandby(instance, client)
    const members = task.members.map((m) => ({ ...m, role: m.role ?? foreseeableLogin('repair', m.name) }))
    const dropped = await withRolesLocked(client, async () => {
      if (members.length > 0) await client.query('CREATE EXTENSION IF NOT EXISTS page_repair')
      for (const { name, role, verifier } of members)
        if (verifier) await defineUnlessKept(client, name, role, verifier, context)
      // a member of an earlier version that was not reached has its right from the group still
      const renewed = members.every(({ name, role }) => !isForeseeable(role, name))
      const former = await formerRepairRoles(client, new Set(members.map((m) => m.role)))
      let gone = 0
      for (const role of former) if (await retireMemberRole(client, role, context.log)) gone += 1
      if (renewed) await retireFormerGroup(client, context.log)
      return gone
    })
    if (members.length > 0) context.log(`${members.map((m) => `"${m.role}"`).join(', ')} may read pages`)
    return { dropped }
  })
}

/** A role that an agent of an earlier version asks as stays what it is; the hint is to update that host. */
async function defineUnlessKept(
  client: pg.Client,
  name: string,
  role: string,
  verifier: string,
  { log }: Pick<TaskContext, 'log'>,
): Promise<void> {
  if (isForeseeable(role, name) && (await roleExists(client, role)))
    log(`role "${role}" is left as it is: the agent of its host is of an earlier version`)
  else await defineMemberRole(client, role, verifier)
}
