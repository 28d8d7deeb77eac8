import { observeStep } from '../observe-step'
import { defineOperation } from '../step'
import { hastenStop } from '../stop-instance/stop-instance'
import { taskStep } from '../task-step'

/** Restarts the engine and sees the new process running; one that is not running is only started. */
export const restartInstance = defineOperation('restart-instance', {
  plan: (_input, observed) => [
    observed.state === 'stopped' || observed.state === 'crashed'
      ? { name: 'start' as const, title: 'Start the engine' }
      : { name: 'restart' as const, title: 'Restart the engine' },
    observed.state === 'stopped' || observed.state === 'crashed'
      ? { name: 'observe-start' as const, title: 'See it running' }
      : { name: 'observe' as const, title: 'See it running' },
  ],
  steps: {
    restart: taskStep('restart-instance', {
      deadlineMs: 300_000,
      task: ({ input }) => ({ kind: 'restart-instance', instanceId: input.instanceId, mode: input.mode }),
      hasten: (context) => hastenStop(context),
    }),
    start: taskStep('start-instance', {
      deadlineMs: 300_000,
      task: ({ input }) => ({ kind: 'start-instance', instanceId: input.instanceId }),
    }),
    observe: observeStep('running', 'restart'),
    'observe-start': observeStep('running', 'start'),
  },
})
