import type { TaskResult } from '@floe/agent-contract'
import {
  afterRoleChange,
  type ClusterMember,
  type ClusterObserved,
  type Fault,
  InstanceId,
  InstanceName,
  judgeCandidates,
  operationStages,
} from '@floe/domain'
import { admit, controlOf, dismiss, memberOf, namesFor, upstreamOf } from '../instance-control'
import { mayLookAgain } from '../look-again'
import { observeFollowing } from '../observe-following'
import { pageRepairStep } from '../page-repair'
import { defineOperation, fail, type MemberTask, next, type StepContext, wait } from '../step'
import { taskStep } from '../task-step'
import { tasksStep } from '../tasks-step'

/** Clients wait for these steps: look often. */
const QUICK_MS = 15

type Context = StepContext<'switchover-cluster'>

const candidateOf = ({ input }: Context, cluster: ClusterObserved) => memberOf(cluster, input.instanceId)
/** The primary of before, also once another one is. */
const formerOf = ({ results }: Context, cluster: ClusterObserved) =>
  memberOf(cluster, String(results.check?.formerInstanceId))
/** Members besides the two that change roles. */
function othersOf(context: Context, cluster: ClusterObserved): ClusterMember[] {
  const ids = (context.results.check?.otherInstanceIds ?? []) as string[]
  return cluster.members.filter((m) => ids.includes(m.instanceId))
}
const onHost = (m: ClusterMember, id: string, task: MemberTask['task']): MemberTask => ({
  id,
  hostId: m.hostId,
  hostName: m.hostName,
  task,
})
/** Who commits wait for on the new primary; the former one takes the place of the standby that is promoted. */
const syncAfter = (context: Context, cluster: ClusterObserved) =>
  cluster.primaryInstanceId === context.input.instanceId
    ? cluster.synchronous
    : afterRoleChange(
        cluster.synchronous,
        context.input.instanceId,
        InstanceId.parse(String(context.results.check?.formerInstanceId)),
      )

/**
 * A standby takes over from a running primary. Everything that can be done before is done before; between the stop of one
 * and the promotion of the other clients cannot write. Until the promotion begins, a failure or a cancel makes the former
 * primary the primary again. The standby is only promoted once it replayed the shutdown checkpoint: nothing is lost.
 */
export const switchoverCluster = defineOperation('switchover-cluster', {
  retryAfresh: true,
  plan: () => operationStages['switchover-cluster'].map(({ name, title }) => ({ name, title })),
  steps: {
    check: {
      deadlineMs: 30_000,
      async run(context) {
        const cluster = await context.readCluster()
        const judged = judgeCandidates(cluster, 'switchover').find(
          (c) => c.instanceId === context.input.instanceId,
        )
        if (!judged) {
          const already = cluster.primaryInstanceId === context.input.instanceId
          return fail({
            code: already ? 'switchover.is_primary' : 'cluster.no_member',
            message: already ? 'this instance is the primary already' : 'no such member of the cluster',
          })
        }
        const [blocker] = judged.blockers
        // also a standby that only seems to be away would be left behind
        const away = cluster.members.some((m) => m.hostState !== 'online' || m.state !== 'running')
        if ((blocker || away) && mayLookAgain(context)) return wait(100, 'looking at all members')
        if (blocker) return fail(blocker)
        const others = cluster.members.filter(
          (m) =>
            m.instanceId !== context.input.instanceId &&
            m.instanceId !== cluster.primaryInstanceId &&
            m.memberRole === 'standby' &&
            m.hostState === 'online' &&
            m.state === 'running',
        )
        return next(
          {
            formerInstanceId: cluster.primaryInstanceId,
            otherInstanceIds: others.map((m) => m.instanceId),
            lagBytes: judged.lagBytes,
          },
          { log: [{ text: `"${judged.name}" can take over; it is ${judged.lagBytes ?? '?'} bytes behind` }] },
        )
      },
    },
    prepare: taskStep('prepare-standby', {
      deadlineMs: 60_000,
      on: formerOf,
      task: (context, cluster) => {
        const former = formerOf(context, cluster)
        return {
          kind: 'prepare-standby',
          instanceId: former.instanceId,
          name: InstanceName.parse(former.name),
        }
      },
    }),
    admit: taskStep('admit-standby', {
      deadlineMs: 60_000,
      on: formerOf,
      task: (context, cluster) => {
        const former = formerOf(context, cluster)
        return admit(former, former.name, {
          verifier: (context.results.prepare as TaskResult<'prepare-standby'>).replicationVerifier,
          slot: false,
        })
      },
    }),
    slots: tasksStep({
      deadlineMs: 60_000,
      sequential: true,
      tasks: (context, cluster) => {
        const candidate = candidateOf(context, cluster)
        return [formerOf(context, cluster), ...othersOf(context, cluster)].map((m) =>
          onHost(candidate, m.name, admit(candidate, m.name, { verifier: null, slot: true })),
        )
      },
    }),
    checkpoint: taskStep('checkpoint-instance', {
      deadlineMs: 600_000,
      on: formerOf,
      task: (context, cluster) => ({
        kind: 'checkpoint-instance',
        instanceId: formerOf(context, cluster).instanceId,
      }),
    }),
    demote: taskStep('demote-instance', {
      deadlineMs: 30_000,
      pollMs: QUICK_MS,
      on: formerOf,
      task: (context, cluster) => {
        const former = formerOf(context, cluster)
        return controlOf(cluster).demote(
          former.instanceId,
          upstreamOf(candidateOf(context, cluster), former.name),
        )
      },
    }),
    promote: taskStep('promote-instance', {
      deadlineMs: 30_000,
      pollMs: QUICK_MS,
      on: candidateOf,
      task: (context, cluster) =>
        controlOf(cluster).promote(context.input.instanceId, {
          beyondLsn: (context.results.demote as TaskResult<'demote-instance'>).shutdownLsn,
          atLeastLsn: null,
          standbyNames: namesFor(cluster, context.input.instanceId, undefined, syncAfter(context, cluster)),
        }),
      records: (_result, context, cluster) => [
        {
          kind: 'cluster-moved',
          clusterId: cluster.clusterId,
          primary: context.input.instanceId,
          former: {
            instanceId: formerOf(context, cluster).instanceId,
            memberRole: 'standby',
            fenceOrdered: false,
          },
          synchronous: syncAfter(context, cluster),
        },
      ],
    }),
    rejoin: tasksStep({
      deadlineMs: 120_000,
      tasks: (context, cluster) => {
        const candidate = candidateOf(context, cluster)
        const former = formerOf(context, cluster)
        return [
          onHost(
            former,
            former.name,
            controlOf(cluster).follow(former.instanceId, upstreamOf(candidate, former.name)),
          ),
          ...othersOf(context, cluster).map((m) =>
            onHost(m, m.name, controlOf(cluster).repoint(m.instanceId, upstreamOf(candidate, m.name))),
          ),
        ]
      },
      tolerate: () => true,
      toleranceMs: 15_000,
    }),
    synchronous: taskStep('set-synchronous', {
      deadlineMs: 60_000,
      on: candidateOf,
      skip: ({ results }, cluster) =>
        cluster.synchronous && leftBehind(results.rejoin).length > 0 ? null : { standbyNames: 'unchanged' },
      // commits must not wait for a member that did not come along
      task: ({ input, results }, cluster) =>
        controlOf(cluster).setSynchronous(
          input.instanceId,
          namesFor(cluster, input.instanceId, (m) => !leftBehind(results.rejoin).includes(m.name)),
        ),
    }),
    tidy: tasksStep({
      deadlineMs: 60_000,
      sequential: true,
      tasks: (context, cluster) => {
        const former = formerOf(context, cluster)
        return [candidateOf(context, cluster), ...othersOf(context, cluster)].map((m) =>
          onHost(former, m.name, dismiss(former, m.name, true)),
        )
      },
      tolerate: () => true,
      toleranceMs: 15_000,
    }),
    observe: observeFollowing((context, cluster) =>
      [formerOf(context, cluster), ...othersOf(context, cluster)]
        .filter((m) => !leftBehind(context.results.rejoin).includes(m.name))
        .map((m) => m.instanceId),
    ),
    repair: pageRepairStep(),
  },
  undo: (context, cluster, why) => {
    // a standby that may have been promoted must not meet a primary that was restored
    if (context.step.name === 'promote' && why.code !== 'promote.behind') return []
    if (context.results.promote?.timeline !== undefined || !context.results.check?.formerInstanceId) return []
    const former = formerOf(context, cluster)
    const candidate = candidateOf(context, cluster)
    return [
      { ...onHost(former, 'restore', controlOf(cluster).restore(former.instanceId)), after: 'demote' },
      ...[former, ...othersOf(context, cluster)].map((m) => ({
        ...onHost(candidate, `dismiss.${m.name}`, dismiss(candidate, m.name, true)),
        after: 'slots',
      })),
    ]
  },
})

/** Names of the members whose task did not end well. */
export function leftBehind(results: Record<string, unknown> | undefined): string[] {
  return Object.entries(results ?? {})
    .filter(([, r]) => (r as { fault?: Fault } | null)?.fault)
    .map(([name]) => name)
}
