import type { TaskInput } from '@floe/agent-contract'
import type { OperationInput } from '@floe/domain'
import { controlFor } from '../instance-control'
import { observeStep } from '../observe-step'
import { defineOperation, type StepContext } from '../step'
import { taskStep } from '../task-step'

/** The immediate stop that a host takes although it is stopping the instance; null unless somebody asked for it meanwhile. */
export const escalateStop = async (
  context: Pick<StepContext, 'readCluster'> & { input: OperationInput<'stop-instance'> },
): Promise<TaskInput | null> =>
  context.input.hastened ? (await controlFor(context)).stop(context.input.instanceId, 'immediate') : null

/** Stops the engine and sees it stopped. `fast` writes a checkpoint first; `immediate` leaves a crash recovery behind. */
export const stopInstance = defineOperation('stop-instance', {
  plan: (input) => [
    {
      name: 'stop',
      title: input.mode === 'immediate' ? 'Stop the engine immediately' : 'Stop the engine',
    },
    { name: 'observe', title: 'Wait until it is stopped' },
  ],
  steps: {
    stop: taskStep('stop-instance', {
      deadlineMs: 120_000,
      task: async (context) => (await controlFor(context)).stop(context.input.instanceId, context.input.mode),
      escalate: (context) => escalateStop(context),
    }),
    observe: observeStep('stopped'),
  },
})
