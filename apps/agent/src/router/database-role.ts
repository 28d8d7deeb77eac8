import { type AgentHandlers, ROLES_LISTED_MAX } from '@floe/agent-contract'
import type { Instances } from '../engine/instances'
import { withRoleSession } from '../engine/roles/role-session'
import { readRoles } from '../engine/roles/seen-role'

/** A probe is given up by who asks after 3 s. */
const STATEMENT_MS = 2_500

export const databaseRoleHandlers = (instances: Instances): Pick<AgentHandlers, 'listDatabaseRoles'> => ({
  listDatabaseRoles: async ({ instanceId, name }) => {
    const seen = await withRoleSession(
      instances.get(instanceId).address,
      (client) => readRoles(client, name ?? null, ROLES_LISTED_MAX + 1),
      { statementMs: STATEMENT_MS },
    )
    return {
      roles: seen.slice(0, ROLES_LISTED_MAX).map(({ role }) => role),
      more: seen.length > ROLES_LISTED_MAX,
      observedAt: Date.now(),
    }
  },
})
