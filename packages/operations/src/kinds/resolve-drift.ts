import { refuseOfCluster } from '../guards'
import { controlFor } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Adopts or reverts configuration drift, and records the effect on each setting. */
export const resolveDrift = defineOperation('resolve-drift', {
  guard: ({ input, instance }) => {
    if (input.how === 'adopt')
      refuseOfCluster(
        instance.settingDrift.map((d) => d.name),
        instance,
      )
  },
  plan: (input) => [
    {
      name: 'resolve',
      title: input.how === 'adopt' ? 'Adopt the configuration drift' : 'Revert the configuration drift',
    },
  ],
  steps: {
    resolve: taskStep('resolve-drift', {
      deadlineMs: 60_000,
      task: async (context) =>
        (await controlFor(context)).resolveDrift(context.input.instanceId, context.input.how),
      records: (result, { input }) => [
        {
          kind: 'settings-confirmed',
          ...result,
          reason:
            input.reason ??
            (input.how === 'adopt' ? 'configuration drift adopted' : 'configuration drift reverted'),
        },
      ],
    }),
  },
})
