import type { TaskResult } from '@floe/agent-contract'
import { type ClusterObserved, InstanceName } from '@floe/domain'
import {
  admitStep,
  admittedUpstream,
  dismissal,
  followStep,
  ownMember,
  withPreparedRole,
} from '../admit-standby'
import { refusePrimary } from '../guards'
import { controlOf, primaryMember, standbysNamed, whyNotNamed } from '../instance-control'
import { observeFollowing } from '../observe-following'
import { pageRepairStep } from '../page-repair'
import { defineOperation, type StepRecord } from '../step'
import { taskStep } from '../task-step'

/**
 * A promotion of a member that has been fenced since, and now follows the primary: the engine that was asked for it is gone,
 * and nothing is left to settle.
 */
export const promotionsEnded = (
  { clusterId, holdings }: Pick<ClusterObserved, 'clusterId' | 'holdings'>,
  instanceId: string,
): StepRecord[] =>
  (holdings?.promotions ?? [])
    .filter((promotion) => promotion.instanceId === instanceId)
    .map(({ operationId }) => ({ kind: 'promotion-passed', clusterId, operationId }))

/**
 * Brings a member back as a standby: a former primary, or one that lost its way. By pg_rewind where that is allowed, else
 * by a new copy, and the log says why. What only it had is kept aside and counted before, and where that fails nothing is
 * discarded, unless a person said that it may be lost. Until it follows it stays fenced.
 */
export const rejoinStandby = defineOperation('rejoin-standby', {
  guard: refusePrimary,
  retryAfresh: true,
  plan: (input) => [
    { name: 'fence', title: 'Stop it and keep it from accepting writes' },
    { name: 'prepare', title: 'Prepare its host' },
    { name: 'admit', title: 'Admit it on the primary' },
    {
      name: 'keep',
      title: input.discardOwn
        ? 'Count the WAL that only it had, without keeping it'
        : 'Keep aside the WAL that only it had',
    },
    ...(input.method === 'rewind'
      ? [{ name: 'rewind' as const, title: 'Rewind it to the primary’s history (pg_rewind)' }]
      : []),
    {
      name: 'clone',
      title:
        input.method === 'rewind' ? 'Copy the primary if the rewind was not possible' : 'Copy the primary',
    },
    { name: 'follow', title: 'Start it as a standby' },
    { name: 'synchronous', title: 'Set the synchronous standbys' },
    { name: 'observe', title: 'Wait until it follows' },
    { name: 'repair', title: 'Let members fetch torn pages from each other' },
  ],
  steps: {
    fence: taskStep('fence-instance', {
      deadlineMs: 120_000,
      on: ownMember,
      task: ({ input }, cluster) => controlOf(cluster).fence(input.instanceId, 'it is being rejoined', null),
    }),
    prepare: taskStep('prepare-standby', {
      deadlineMs: 60_000,
      on: ownMember,
      task: (context, cluster) => ({
        kind: 'prepare-standby',
        instanceId: context.input.instanceId,
        name: InstanceName.parse(ownMember(context, cluster).name),
      }),
    }),
    admit: admitStep,
    keep: taskStep('keep-aside', {
      deadlineMs: 3_600_000,
      on: ownMember,
      task: (context, cluster) => ({
        kind: 'keep-aside',
        instanceId: context.input.instanceId,
        upstream: admittedUpstream(context),
        primary: InstanceName.parse(primaryMember(cluster).name),
        discard: context.input.discardOwn === true,
      }),
      olderAgent: {
        result: { ownBytes: null, ownCommits: null, keptAside: null, discarded: false },
        log: 'nothing was kept aside: its host’s agent is of an earlier version without that task; the WAL that only it had is unknown',
      },
    }),
    rewind: taskStep('rewind-instance', {
      deadlineMs: 3_600_000,
      task: (context) => ({
        kind: 'rewind-instance',
        instanceId: context.input.instanceId,
        upstream: admittedUpstream(context),
        keptAside: (context.results.keep as TaskResult<'keep-aside'> | undefined)?.keptAside?.name ?? null,
      }),
    }),
    clone: taskStep('clone-standby', {
      deadlineMs: 24 * 3_600_000,
      on: ownMember,
      skip: ({ results }) =>
        results.rewind?.rewound === true ? { skipped: 'it was rewound; no copy is needed' } : null,
      task: (context) => ({
        kind: 'clone-standby',
        instanceId: context.input.instanceId,
        upstream: admittedUpstream(context),
        replace: true,
      }),
    }),
    follow: followStep(({ input }, cluster) => promotionsEnded(cluster, input.instanceId)),
    synchronous: taskStep('set-synchronous', {
      deadlineMs: 60_000,
      on: (_context, cluster) => primaryMember(cluster),
      skip: (_context, cluster) => (cluster.synchronous ? null : { standbyNames: '' }),
      task: ({ input }, cluster) =>
        controlOf(cluster).setSynchronous(
          cluster.primaryInstanceId,
          standbysNamed(cluster, cluster.primaryInstanceId, (m) =>
            m.instanceId === input.instanceId ? null : whyNotNamed(cluster)(m),
          ).names,
        ),
    }),
    observe: observeFollowing(({ input }) => [input.instanceId]),
    repair: pageRepairStep({ known: withPreparedRole }),
  },
  undo: (context, observed) => {
    const cluster = withPreparedRole(context, observed)
    if (context.results.follow?.postmasterPid !== undefined) return []
    return [dismissal(cluster, ownMember(context, cluster), true)]
  },
})
