import { refuseOfCluster } from '../guards'
import { controlFor } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Has the instance's own binary check the values, writes them, reloads, and records what was confirmed. */
export const changeSettings = defineOperation('change-settings', {
  guard: ({ input, instance }) =>
    refuseOfCluster(
      input.changes.map((c) => c.name),
      instance,
    ),
  plan: (input) => [
    { name: 'apply', title: input.changes.length === 1 ? 'Apply the setting' : 'Apply the settings' },
  ],
  steps: {
    apply: taskStep('change-settings', {
      deadlineMs: 60_000,
      task: async (context) =>
        (await controlFor(context)).changeSettings(context.input.instanceId, context.input.changes),
      // the history says what was asked for, also where it waits for a restart
      records: (result) => [
        {
          kind: 'settings-confirmed',
          ...result,
          confirmed: result.confirmed.map((c) =>
            c.pendingRestart && result.managed
              ? { ...c, newValue: result.managed[c.name.toLowerCase()] ?? null }
              : c,
          ),
        },
      ],
    }),
  },
})
