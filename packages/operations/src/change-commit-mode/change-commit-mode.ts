import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** synchronous_commit of a database, a role, or a role in a database. It replicates: every member has it. */
export const changeCommitMode = defineOperation('change-commit-mode', {
  plan: () => [{ name: 'apply', title: 'Set it on the primary' }],
  steps: {
    apply: taskStep('set-commit-mode', {
      deadlineMs: 60_000,
      task: ({ input }) => ({ kind: 'set-commit-mode', ...input }),
    }),
  },
})
