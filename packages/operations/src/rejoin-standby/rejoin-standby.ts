import type { TaskResult, Upstream } from '@floe/agent-contract'
import { type ClusterObserved, InstanceName, standbySeenOf } from '@floe/domain'
import { admit, controlOf, dismiss, memberOf, namesFor, primaryMember } from '../instance-control'
import { observeFollowing } from '../observe-following'
import { pageRepairStep } from '../page-repair'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

const own = (context: { input: { instanceId: string } }, cluster: ClusterObserved) =>
  memberOf(cluster, context.input.instanceId)

/**
 * Brings a member back as a standby: a former primary, or one that lost its way. By pg_rewind where that is allowed, else
 * by a new copy, and the log says why. Until it follows it stays fenced.
 */
export const rejoinStandby = defineOperation('rejoin-standby', {
  retryAfresh: true,
  plan: (input) => [
    { name: 'fence', title: 'Stop it and keep it from accepting writes' },
    { name: 'prepare', title: 'Prepare its host' },
    { name: 'admit', title: 'Admit it on the primary' },
    ...(input.method === 'rewind'
      ? [{ name: 'rewind' as const, title: 'Take back what only it had written (pg_rewind)' }]
      : []),
    {
      name: 'clone',
      title: input.method === 'rewind' ? 'Copy the primary, where that was not possible' : 'Copy the primary',
    },
    { name: 'follow', title: 'Start it and let it follow' },
    { name: 'synchronous', title: 'Set the synchronous standbys' },
    { name: 'observe', title: 'See it follow' },
    { name: 'repair', title: 'Let members take torn pages from each other' },
  ],
  steps: {
    fence: taskStep('fence-instance', {
      deadlineMs: 120_000,
      on: own,
      task: ({ input }, cluster) => controlOf(cluster).fence(input.instanceId, 'it is being rejoined'),
    }),
    prepare: taskStep('prepare-standby', {
      deadlineMs: 60_000,
      on: own,
      task: (context, cluster) => ({
        kind: 'prepare-standby',
        instanceId: context.input.instanceId,
        name: InstanceName.parse(own(context, cluster).name),
      }),
    }),
    admit: taskStep('admit-standby', {
      deadlineMs: 60_000,
      on: (_context, cluster) => primaryMember(cluster),
      task: (context, cluster) =>
        admit(primaryMember(cluster), own(context, cluster).name, {
          verifier: (context.results.prepare as TaskResult<'prepare-standby'>).replicationVerifier,
          slot: true,
        }),
    }),
    rewind: taskStep('rewind-instance', {
      deadlineMs: 3_600_000,
      task: ({ input, results }) => ({
        kind: 'rewind-instance',
        instanceId: input.instanceId,
        upstream: results.admit?.upstream as Upstream,
      }),
    }),
    clone: taskStep('clone-standby', {
      deadlineMs: 24 * 3_600_000,
      on: own,
      skip: ({ results }) =>
        results.rewind?.rewound === true ? { skipped: 'it was rewound; no copy is needed' } : null,
      task: ({ input, results }) => ({
        kind: 'clone-standby',
        instanceId: input.instanceId,
        upstream: results.admit?.upstream as Upstream,
        replace: true,
      }),
    }),
    follow: taskStep('follow-upstream', {
      deadlineMs: 600_000,
      on: own,
      task: ({ input, results }, cluster) =>
        controlOf(cluster).follow(input.instanceId, results.admit?.upstream as Upstream),
      records: (_result, { input }) => [
        { kind: 'member-role', instanceId: input.instanceId, memberRole: 'standby' },
      ],
    }),
    synchronous: taskStep('set-synchronous', {
      deadlineMs: 60_000,
      on: (_context, cluster) => primaryMember(cluster),
      skip: (_context, cluster) => (cluster.synchronous ? null : { standbyNames: '' }),
      task: ({ input }, cluster) =>
        controlOf(cluster).setSynchronous(
          cluster.primaryInstanceId,
          namesFor(
            cluster,
            cluster.primaryInstanceId,
            (m) =>
              m.instanceId === input.instanceId ||
              standbySeenOf(primaryMember(cluster), m)?.state === 'streaming',
          ),
        ),
    }),
    observe: observeFollowing(({ input }) => [input.instanceId]),
    repair: pageRepairStep(),
  },
  undo: (context, cluster) => {
    if (context.results.follow?.postmasterPid !== undefined) return []
    const primary = primaryMember(cluster)
    return [
      {
        // a slot that nobody uses would keep WAL until the primary's disk is full
        id: 'dismiss',
        after: 'admit',
        hostId: primary.hostId,
        hostName: primary.hostName,
        task: dismiss(primary, own(context, cluster).name, true),
      },
    ]
  },
})
