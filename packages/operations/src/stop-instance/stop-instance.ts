import type { OperationInput } from '@floe/domain'
import { observeStep } from '../observe-step'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** The immediate stop that a host takes although it is stopping the instance; null unless somebody asked for it meanwhile. */
export const hastenStop = ({ input }: { input: OperationInput<'stop-instance'> }) =>
  input.hastened
    ? { kind: 'stop-instance' as const, instanceId: input.instanceId, mode: 'immediate' as const }
    : null

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
      hasten: (context) => hastenStop(context),
    }),
    observe: observeStep('stopped'),
  },
})
