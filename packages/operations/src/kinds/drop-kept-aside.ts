import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Removes what was kept aside at a rejoin from the instance's host. */
export const dropKeptAside = defineOperation('drop-kept-aside', {
  plan: () => [{ name: 'drop', title: 'Remove the WAL kept aside' }],
  steps: {
    drop: taskStep('drop-kept-aside', {
      deadlineMs: 600_000,
      task: ({ input }) => ({
        kind: 'drop-kept-aside',
        instanceId: input.instanceId,
        name: input.keptAside,
      }),
    }),
  },
})
