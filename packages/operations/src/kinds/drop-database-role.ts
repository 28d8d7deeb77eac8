import { onItsPrimary, refuseRole } from '../database-role'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** DROP ROLE on the primary; refused by PostgreSQL while the role owns objects or has privileges on them. */
export const dropDatabaseRole = defineOperation('drop-database-role', {
  guard: (asked) => refuseRole(asked),
  plan: ({ role }) => [{ name: 'drop', title: `Drop role "${role}"` }],
  steps: {
    drop: taskStep('drop-database-role', {
      ...onItsPrimary,
      task: ({ input }) => ({ kind: 'drop-database-role', ...input }),
    }),
  },
})
