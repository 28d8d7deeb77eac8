import { stallLengthMs } from '@floe/domain'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** From when on work without a commit of an instance is a stall; its agent keeps it. */
export const setStallLength = defineOperation('set-stall-length', {
  plan: () => [{ name: 'set', title: 'Set the stall length' }],
  steps: {
    set: taskStep('set-stall-length', {
      deadlineMs: 60_000,
      task: ({ input }) => ({
        kind: 'set-stall-length',
        instanceId: input.instanceId,
        afterMs: stallLengthMs(input.after),
      }),
    }),
  },
})
