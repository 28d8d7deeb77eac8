import type { ClusterObserved } from '@floe/domain'
import { refuseLeaving } from '../guards'
import { controlOf, dismiss, memberOf, primaryMember } from '../instance-control'
import { leaveSynchronousSet } from '../leave-synchronous-set'
import { observeStep } from '../observe-step'
import { pageRepairStep } from '../page-repair'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

const own = (context: { input: { instanceId: string } }, cluster: ClusterObserved) =>
  memberOf(cluster, context.input.instanceId)

/** Makes a standby an instance of its own, e.g. to try something on a copy. The cluster it leaves goes on without it. */
export const promoteStandby = defineOperation('promote-standby', {
  guard: refuseLeaving,
  plan: () => [
    { name: 'synchronous', title: 'Remove it from the synchronous standbys' },
    { name: 'repair', title: 'Remove it from the page repair sources' },
    { name: 'isolate', title: 'Stop WAL streaming to it' },
    { name: 'dismiss', title: 'Drop its slot and role on the primary' },
    { name: 'promote', title: 'Promote it' },
    { name: 'observe', title: 'Wait until it runs' },
  ],
  steps: {
    synchronous: leaveSynchronousSet(),
    repair: pageRepairStep({ without: ({ input }) => input.instanceId }),
    isolate: taskStep('isolate-standby', {
      deadlineMs: 60_000,
      on: own,
      task: ({ input }, cluster) => controlOf(cluster).isolate(input.instanceId),
    }),
    dismiss: taskStep('dismiss-standby', {
      deadlineMs: 60_000,
      on: (_context, cluster) => primaryMember(cluster),
      task: (context, cluster) => dismiss(cluster, primaryMember(cluster), own(context, cluster), false),
    }),
    promote: taskStep('promote-instance', {
      deadlineMs: 120_000,
      on: own,
      task: ({ input }, cluster) =>
        controlOf(cluster).promote(input.instanceId, { beyondLsn: null, atLeastLsn: null, standbyNames: '' }),
      records: () => [{ kind: 'own-cluster' }],
    }),
    observe: observeStep('running'),
  },
})
