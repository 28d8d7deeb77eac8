import { controlOf } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/**
 * Carries out what a failover could not, because its former primary's host was out of reach and answers again; and keeps
 * what was removed without its host from ever running again.
 */
export const fenceInstance = defineOperation('fence-instance', {
  // what was removed without its host is fenced when it shows up
  alsoDeleted: true,
  plan: () => [{ name: 'fence', title: 'Stop it and keep it from accepting writes' }],
  steps: {
    fence: taskStep('fence-instance', {
      deadlineMs: 120_000,
      // one that was removed is no member any more; its host is that of the operation
      on: () => null,
      task: ({ input }, cluster) =>
        controlOf(cluster).fence(
          input.instanceId,
          cluster.members.some((m) => m.instanceId === input.instanceId)
            ? 'another instance took over while its host was unreachable'
            : 'it was removed while its host was unreachable',
          input.timeline ?? null,
        ),
      records: (_result, { input }) => [
        { kind: 'member-role', instanceId: input.instanceId, memberRole: 'fenced' },
      ],
    }),
  },
})
