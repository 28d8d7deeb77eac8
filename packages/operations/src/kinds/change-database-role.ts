import { fault } from '@floe/domain'
import { onItsPrimary, refuseRole } from '../database-role'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** ALTER ROLE with what is granted and revoked, in one transaction on the primary; standbys have it by replication. */
export const changeDatabaseRole = defineOperation('change-database-role', {
  async guard(asked) {
    const { instanceId: _id, role: _role, grant, revoke, ...attributes } = asked.input
    const both = grant.find((name) => revoke.includes(name))
    if (both !== undefined)
      throw fault('role.contradiction', `role "${both}" cannot be granted and revoked at once`)
    if (
      grant.length + revoke.length === 0 &&
      Object.values(attributes).every((attribute) => attribute === undefined)
    )
      throw fault('role.no_change', 'there is nothing to change', {
        hint: 'Name an attribute, a role to grant or revoke, or a password.',
      })
    await refuseRole(asked, [...grant, ...revoke])
  },
  plan: ({ role }) => [{ name: 'change', title: `Change role "${role}"` }],
  steps: {
    change: taskStep('change-database-role', {
      ...onItsPrimary,
      task: ({ input }) => ({ kind: 'change-database-role', ...input }),
    }),
  },
})
