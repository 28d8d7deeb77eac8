import { controlFor } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Makes the engine read its configuration files again; the result names what waits for a restart. */
export const reloadInstance = defineOperation('reload-instance', {
  plan: () => [{ name: 'reload', title: 'Reload the configuration' }],
  steps: {
    reload: taskStep('reload-instance', {
      deadlineMs: 30_000,
      task: async (context) => (await controlFor(context)).reload(context.input.instanceId),
    }),
  },
})
