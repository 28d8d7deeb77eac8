import { observeStep } from '../observe-step'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Stops the engine and sees it stopped. `fast` writes a checkpoint first; `immediate` leaves a crash recovery behind. */
export const stopInstance = defineOperation('stop-instance', {
  plan: (input) => [
    {
      name: 'stop',
      title: input.mode === 'immediate' ? 'Stop the engine immediately' : 'Stop the engine',
    },
    { name: 'observe', title: 'See it stopped' },
  ],
  steps: {
    stop: taskStep('stop-instance', {
      deadlineMs: 120_000,
      task: ({ input }) => ({ kind: 'stop-instance', instanceId: input.instanceId, mode: input.mode }),
    }),
    observe: observeStep('stopped'),
  },
})
