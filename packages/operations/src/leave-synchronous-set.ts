import { withoutMember } from '@floe/domain'
import { controlOf, primaryMember, standbysNamed, whyNotNamed } from './instance-control'
import type { StepBody } from './step'
import { taskStep } from './task-step'

/** A step after which no commit waits for the operation's own instance, which is about to leave its cluster. */
export const leaveSynchronousSet = <K extends 'remove-standby' | 'promote-standby'>(): StepBody<K> =>
  taskStep<K, 'set-synchronous'>('set-synchronous', {
    deadlineMs: 60_000,
    on: (_context, cluster) => primaryMember(cluster),
    skip: ({ input }, cluster) =>
      cluster.synchronous?.instanceIds.includes(input.instanceId) ? null : { standbyNames: 'unchanged' },
    task: ({ input }, cluster) =>
      controlOf(cluster).setSynchronous(
        cluster.primaryInstanceId,
        standbysNamed(cluster, cluster.primaryInstanceId, whyNotNamed(cluster), {
          sync: withoutMember(cluster.synchronous, input.instanceId),
          asMany: true,
        }).names,
      ),
    records: (_result, { input }, cluster) => [
      {
        kind: 'cluster-synchronous',
        clusterId: cluster.clusterId,
        synchronous: withoutMember(cluster.synchronous, input.instanceId),
      },
    ],
  })
