import { controlOf } from '../instance-control'
import { observeStep } from '../observe-step'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Starts the engine, after a crash as well, and sees it running. Replaying much WAL takes long, hence the deadline. */
export const startInstance = defineOperation('start-instance', {
  plan: (_input, observed) => [
    {
      name: 'start',
      title: observed.state === 'crashed' ? 'Start the engine after its crash' : 'Start the engine',
    },
    { name: 'observe', title: 'Wait until it runs' },
  ],
  steps: {
    start: taskStep('start-instance', {
      deadlineMs: 300_000,
      // the order names the recorded primary, by which alone one that is held back starts
      on: () => null,
      task: ({ input }, cluster) => controlOf(cluster).start(input.instanceId),
    }),
    observe: observeStep('running', 'start'),
  },
})
