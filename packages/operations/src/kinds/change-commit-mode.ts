import { refuseStandby } from '../guards'
import { controlFor } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** synchronous_commit of a database, a role, or a role in a database. It replicates: every member has it. */
export const changeCommitMode = defineOperation('change-commit-mode', {
  guard: refuseStandby,
  plan: () => [{ name: 'apply', title: 'Set it on the primary' }],
  steps: {
    apply: taskStep('set-commit-mode', {
      deadlineMs: 60_000,
      // its own instance; the cluster is what it is recorded of
      on: () => null,
      task: async (context) =>
        (await controlFor(context)).setCommitMode(context.input.instanceId, context.input),
      // null takes a level away; that of sessions that are open goes on
      begins: ({ database, role, commitMode }, _context, { clusterId }) =>
        commitMode === null
          ? []
          : [{ kind: 'commit-level', clusterId, scope: { database, role, commitMode } }],
    }),
  },
})
