import type { Upstream } from '@floe/agent-contract'
import { fault, foreseeableLogin, slotNameOf } from '@floe/domain'
import { serveTls } from '../../engine/access/serve-tls'
import { letIn } from '../../engine/cluster/let-in'
import { defineMemberRole, retireForeseeable, withRolesLocked } from '../../engine/cluster/member-roles'
import { withPrimarySession } from '../../engine/cluster/primary-session'
import { ensureSlot } from '../../engine/cluster/slots'
import { readUpstreamFacts } from '../../engine/cluster/upstream-facts'
import type { TaskBody } from '../runner/task'

/** Role, pg_hba.conf and slot for a member that is to follow this instance, and how to reach it. */
export const admitStandby: TaskBody<'admit-standby'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const role = task.role ?? foreseeableLogin('standby', task.standbyName)
  const slot = slotNameOf(task.standbyName)
  return withPrimarySession(instance, async (client) => {
    const facts = await readUpstreamFacts(client)
    if (facts.tablespaces > 0)
      throw fault('standby.tablespaces', 'an instance with tablespaces of its own cannot be copied', {
        detail: `Instance "${instance.registered.name}" has ${facts.tablespaces} of them.`,
        hint: 'Move their tables to the default tablespace and drop them.',
      })
    await serveTls(instance, client)
    const { verifier } = task
    if (!facts.inRecovery && verifier !== null) {
      await withRolesLocked(client, async () => {
        await defineMemberRole(client, role, verifier)
        await retireForeseeable(client, task.standbyName, role, context)
      })
      context.log(`role "${role}" may replicate`)
    }
    await letIn(instance, client, task.roles ?? [role])
    if (task.slot) {
      await ensureSlot(client, slot)
      context.log(`slot "${slot}" keeps WAL for it`)
    }
    const upstream: Upstream = {
      ...(await instance.reachedAt()),
      slot,
      role,
      systemIdentifier: facts.systemIdentifier,
      engineVersion: facts.version,
      sizeBytes: facts.sizeBytes,
    }
    return { upstream }
  })
}
