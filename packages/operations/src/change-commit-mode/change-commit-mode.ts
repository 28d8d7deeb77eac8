import { controlFor } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** synchronous_commit of a database, a role, or a role in a database. It replicates: every member has it. */
export const changeCommitMode = defineOperation('change-commit-mode', {
  plan: () => [{ name: 'apply', title: 'Set it on the primary' }],
  steps: {
    apply: taskStep('set-commit-mode', {
      deadlineMs: 60_000,
      task: async (context) =>
        (await controlFor(context)).setCommitMode(context.input.instanceId, context.input),
    }),
  },
})
