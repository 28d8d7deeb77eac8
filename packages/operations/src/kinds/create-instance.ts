import { insertInstance, isCreationOver } from '@floe/db'
import { FaultError, fault, noLimits, whyNoLimits, withLimits } from '@floe/domain'
import { chooseHost } from '../choose-host'
import { controlFor, memberOf } from '../instance-control'
import { observeStep } from '../observe-step'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/**
 * Makes the data directory, starts the engine, and sees it running. Until the engine has started, a failure or a cancel
 * takes everything back, the row too: the name is free, and nothing is left to be deleted by hand.
 */
export const createInstance = defineOperation('create-instance', {
  claim: async ({ tx, input, retryOf, hostId, instance }) => {
    // nothing is kept of its password then
    if (retryOf !== null && (await isCreationOver(tx, retryOf)))
      throw fault('operation.not_retryable', 'the operation can no longer be retried', {
        detail: 'Its instance was created by a later retry, or was deleted.',
        hint: 'Create a new instance.',
      })
    if (retryOf !== null && instance) return false
    const { instanceId, name } = input
    const refusal = whyNoLimits(withLimits(noLimits, input.limits ?? {}))
    if (refusal) throw new FaultError(refusal)
    await insertInstance(tx, { instanceId, name, hostId: await chooseHost(tx, hostId), intent: 'running' })
    return true
  },
  retryAfresh: true,
  plan: ({ limits }) => [
    { name: 'create', title: 'Create the data directory' },
    ...(limits === undefined ? [] : [{ name: 'limit' as const, title: 'Set its limits' }]),
    { name: 'start', title: 'Start the engine' },
    { name: 'observe', title: 'Wait until it runs' },
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
      // the first revision that can be rolled back to
      records: ({ managed }) =>
        managed ? [{ kind: 'settings-confirmed', confirmed: [], managed, reason: 'as it was created' }] : [],
    }),
    limit: taskStep('limit-instance', {
      deadlineMs: 60_000,
      task: async (context) =>
        (await controlFor(context)).limit(context.input.instanceId, context.input.limits ?? {}),
      records: ({ limits }) => [{ kind: 'limits-confirmed', limits }],
    }),
    start: taskStep('start-instance', {
      deadlineMs: 60_000,
      task: async (context) => (await controlFor(context)).start(context.input.instanceId),
    }),
    observe: observeStep('running', 'start'),
  },
  undo: (context, cluster) => {
    // an engine that has run is an instance like any other: its log says why it ended
    if (hasStarted(context.results)) return []
    const { hostId, hostName, name } = memberOf(cluster, context.input.instanceId)
    return [
      {
        id: 'remove',
        after: 'create',
        hostId,
        hostName,
        task: {
          kind: 'delete-instance',
          instanceId: context.input.instanceId,
          confirmName: name,
          keepFiles: false,
        },
      },
    ]
  },
  undone: ({ results }) => (hasStarted(results) ? [] : [{ kind: 'instance-deleted' }]),
})

const hasStarted = (results: Readonly<Record<string, Record<string, unknown>>>) =>
  results.start?.postmasterPid !== undefined
