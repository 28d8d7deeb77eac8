import { refuseOfCluster } from '../guards'
import { controlFor } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Keeps what was changed past Floe, or puts it back, and records what that means for each setting. */
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
      title: input.how === 'adopt' ? 'Adopt what was changed past Floe' : 'Revert what was changed past Floe',
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
            (input.how === 'adopt' ? 'adopted: changed past Floe' : 'reverted: changed past Floe'),
        },
      ],
    }),
  },
})
