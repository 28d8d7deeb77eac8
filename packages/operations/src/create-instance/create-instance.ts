import { controlFor } from '../instance-control'
import { observeStep } from '../observe-step'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Makes the data directory, starts the engine, and sees it running. */
export const createInstance = defineOperation('create-instance', {
  plan: () => [
    { name: 'create', title: 'Create the data directory' },
    { name: 'start', title: 'Start the engine' },
    { name: 'observe', title: 'See it running' },
  ],
  steps: {
    create: taskStep('create-instance', {
      deadlineMs: 120_000,
      task: ({ input }) => ({
        kind: 'create-instance',
        instanceId: input.instanceId,
        name: input.name,
        settings: input.settings,
        ownerPasswordVerifier: input.ownerPasswordVerifier,
      }),
      // the first state that can be gone back to
      records: ({ managed }) =>
        managed ? [{ kind: 'settings-confirmed', confirmed: [], managed, reason: 'as it was created' }] : [],
    }),
    start: taskStep('start-instance', {
      deadlineMs: 60_000,
      task: async (context) => (await controlFor(context)).start(context.input.instanceId),
    }),
    observe: observeStep('running', 'start'),
  },
})
