import { controlOf } from '../instance-control'
import { observeStep } from '../observe-step'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'
import { escalateStop } from './stop-instance'

/** Restarts the engine and sees the new process running; one that is not running is only started. */
export const restartInstance = defineOperation('restart-instance', {
  plan: (_input, observed) => [
    observed.state === 'stopped' || observed.state === 'crashed'
      ? { name: 'start' as const, title: 'Start the engine' }
      : { name: 'restart' as const, title: 'Restart the engine' },
    observed.state === 'stopped' || observed.state === 'crashed'
      ? { name: 'observe-start' as const, title: 'Wait until it runs' }
      : { name: 'observe' as const, title: 'Wait until it runs' },
  ],
  steps: {
    restart: taskStep('restart-instance', {
      deadlineMs: 300_000,
      on: () => null,
      task: ({ input }, cluster) => controlOf(cluster).restart(input.instanceId, input.mode),
      escalate: (context) => escalateStop(context),
      records: ({ rolledBack }) =>
        rolledBack
          ? [
              {
                kind: 'settings-confirmed',
                confirmed: rolledBack.confirmed,
                managed: rolledBack.managed,
                reason: `rolled back: the engine did not start (${rolledBack.line ?? rolledBack.reason})`,
              },
            ]
          : [],
      faultOf: ({ rolledBack }) =>
        rolledBack
          ? {
              code: 'setting.rolled_back',
              message: 'the engine did not start with changed settings, which were rolled back',
              detail: [rolledBack.line && `It was ${rolledBack.line}.`, rolledBack.reason]
                .filter(Boolean)
                .join(' '),
              hint: 'The instance runs with the settings of its last start.',
            }
          : null,
    }),
    start: taskStep('start-instance', {
      deadlineMs: 300_000,
      on: () => null,
      task: ({ input }, cluster) => controlOf(cluster).start(input.instanceId),
    }),
    observe: observeStep('running', 'restart'),
    'observe-start': observeStep('running', 'start'),
  },
})
