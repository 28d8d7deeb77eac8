import { controlOf, memberOf } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Carries out what a failover could not: its former primary's host was out of reach and answers again. */
export const fenceInstance = defineOperation('fence-instance', {
  plan: () => [{ name: 'fence', title: 'Stop it and keep it from accepting writes' }],
  steps: {
    fence: taskStep('fence-instance', {
      deadlineMs: 120_000,
      on: ({ input }, cluster) => memberOf(cluster, input.instanceId),
      task: ({ input }, cluster) =>
        controlOf(cluster).fence(
          input.instanceId,
          'another instance took over while its host was out of reach',
        ),
      records: (_result, { input }) => [
        { kind: 'member-role', instanceId: input.instanceId, memberRole: 'fenced' },
      ],
    }),
  },
})
