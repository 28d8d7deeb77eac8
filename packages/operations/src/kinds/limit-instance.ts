import { FaultError, whyNoLimits, withLimits } from '@floe/domain'
import { controlFor } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** How much of its host an instance may use: kept by its agent for every start, and at once where it runs. */
export const limitInstance = defineOperation('limit-instance', {
  guard: ({ input, instance }) => {
    const refusal = whyNoLimits(withLimits(instance.limits, input.changes))
    if (refusal) throw new FaultError(refusal)
  },
  plan: () => [{ name: 'limit', title: 'Set the limits' }],
  steps: {
    limit: taskStep('limit-instance', {
      deadlineMs: 60_000,
      task: async (context) =>
        (await controlFor(context)).limit(context.input.instanceId, context.input.changes),
      records: ({ limits }) => [{ kind: 'limits-confirmed', limits }],
    }),
  },
})
