import { onItsPrimary, refuseRole } from '../database-role'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** CREATE ROLE with its memberships, in one transaction on the primary; standbys have it by replication. */
export const createDatabaseRole = defineOperation('create-database-role', {
  guard: (asked) => refuseRole(asked, asked.input.memberOf),
  plan: ({ role }) => [{ name: 'create', title: `Create role "${role}"` }],
  steps: {
    create: taskStep('create-database-role', {
      ...onItsPrimary,
      task: ({ input }) => ({ kind: 'create-database-role', ...input }),
    }),
  },
})
