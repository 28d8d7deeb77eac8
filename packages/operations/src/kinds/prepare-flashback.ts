import { onItsMember } from '../flashback'
import { refuseStandby } from '../guards'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Installs the extension on the primary; standbys get it by its WAL. Other flashbacks do the same where they need it. */
export const prepareFlashback = defineOperation('prepare-flashback', {
  guard: refuseStandby,
  plan: ({ database }) => [{ name: 'prepare', title: `Install flashback_table in database "${database}"` }],
  steps: {
    prepare: taskStep('prepare-flashback', {
      ...onItsMember,
      deadlineMs: 120_000,
      task: ({ input }) => ({
        kind: 'prepare-flashback',
        instanceId: input.instanceId,
        database: input.database,
      }),
    }),
  },
})
