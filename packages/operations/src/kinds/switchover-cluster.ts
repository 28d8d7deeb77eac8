import type { TaskResult } from '@floe/agent-contract'
import {
  afterRoleChange,
  type ClusterMember,
  type ClusterObserved,
  type Fault,
  InstanceId,
  InstanceName,
  judgeCandidates,
  operationRecords,
  partedAt,
  promotedAs,
  replicationLoginOf,
  unknownHoldings,
  withPromotionSettled,
} from '@floe/domain'
import { refusePrimary } from '../guards'
import {
  admit,
  controlOf,
  dismiss,
  leftOutLines,
  memberOf,
  standbysNamed,
  upstreamOf,
  whyNotNamed,
  withReplicationRole,
} from '../instance-control'
import { mayLookAgain } from '../look-again'
import { observeFollowing } from '../observe-following'
import { pageRepairStep } from '../page-repair'
import { promoteStep } from '../promote-step'
import { isRefuted, promotionBegun } from '../promotion-record'
import { promotionsOver, promotionsRefuted } from '../settle-promotions'
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
/** The cluster with the role that the former primary is to come back as. */
const prepared = ({ results }: Context, cluster: ClusterObserved) =>
  withReplicationRole(cluster, results.check?.formerInstanceId, results.prepare)
/** Members besides the two that change roles. */
function othersOf(context: Context, cluster: ClusterObserved): ClusterMember[] {
  const ids = (context.results.check?.otherInstanceIds ?? []) as string[]
  return cluster.members.filter((m) => ids.includes(m.instanceId))
}
/** Why a member is not waited for, as of the check; the former primary follows in a moment. */
const notFollowing =
  ({ results }: Pick<Context, 'results'>) =>
  (m: ClusterMember): string | null =>
    (results.check?.notFollowing as Record<string, string> | undefined)?.[m.name] ?? null
/** The same once members were to follow the new primary. */
const whyNotAfter =
  (context: Pick<Context, 'results'>) =>
  (m: ClusterMember): string | null => {
    if (leftBehind(context.results.rejoin).includes(m.name)) return 'it does not follow the new primary'
    return m.name in (context.results.rejoin ?? {}) ? null : notFollowing(context)(m)
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
  guard: refusePrimary,
  retryAfresh: true,
  plan: () => operationRecords['switchover-cluster'].stages.map(({ name, title }) => ({ name, title })),
  steps: {
    check: {
      deadlineMs: 30_000,
      async run(context) {
        const observed = await context.readCluster()
        const refuted = promotionsRefuted(observed, await promotionsOver(context, observed))
        const cluster = {
          ...observed,
          holdings: refuted.reduce(
            (h, p) => withPromotionSettled(h, p.operationId),
            observed.holdings ?? unknownHoldings(),
          ),
        }
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
        if ((blocker || away) && mayLookAgain(context)) return wait(100, 'checking all members')
        if (blocker) return fail(blocker)
        const others = cluster.members.filter(
          (m) =>
            m.instanceId !== context.input.instanceId &&
            m.instanceId !== cluster.primaryInstanceId &&
            m.memberRole === 'standby' &&
            m.hostState === 'online' &&
            m.state === 'running' &&
            // it could not follow the new one either
            partedAt(cluster, m) === null,
        )
        const why = whyNotNamed(cluster)
        const strayed = cluster.members.flatMap((m) =>
          m.instanceId === cluster.primaryInstanceId || why(m) === null ? [] : [[m.name, why(m)]],
        )
        const { leftOut } = standbysNamed(cluster, context.input.instanceId, why)
        return next(
          {
            formerInstanceId: cluster.primaryInstanceId,
            otherInstanceIds: others.map((m) => m.instanceId),
            notFollowing: Object.fromEntries(strayed),
            leftOut,
            lagBytes: judged.lagBytes,
          },
          {
            log: [
              { text: `"${judged.name}" can take over; it is ${judged.lagBytes ?? '?'} bytes behind` },
              ...leftOutLines(leftOut),
            ],
            records: refuted.map(({ operationId }) => ({
              kind: 'promotion-settled',
              clusterId: cluster.clusterId,
              operationId,
            })),
          },
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
      task: (context, observed) => {
        const cluster = prepared(context, observed)
        const former = formerOf(context, cluster)
        return admit(cluster, former, former, {
          verifier: (context.results.prepare as TaskResult<'prepare-standby'>).replicationVerifier,
          slot: false,
        })
      },
    }),
    slots: tasksStep({
      deadlineMs: 60_000,
      sequential: true,
      tasks: (context, observed) => {
        const cluster = prepared(context, observed)
        const candidate = candidateOf(context, cluster)
        return [formerOf(context, cluster), ...othersOf(context, cluster)].map((m) =>
          onHost(candidate, m.name, admit(cluster, candidate, m, { verifier: null, slot: true })),
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
      task: (context, observed) => {
        const cluster = prepared(context, observed)
        const former = formerOf(context, cluster)
        const candidate = candidateOf(context, cluster)
        return controlOf(cluster).demote(
          former.instanceId,
          upstreamOf(candidate, former),
          replicationLoginOf(candidate),
        )
      },
    }),
    promote: promoteStep({
      on: candidateOf,
      task: (context, cluster) =>
        controlOf(cluster).promote(context.input.instanceId, {
          beyondLsn: (context.results.demote as TaskResult<'demote-instance'>).shutdownLsn,
          atLeastLsn: null,
          ofCluster: true,
          standbyNames: standbysNamed(cluster, context.input.instanceId, notFollowing(context), {
            sync: syncAfter(context, cluster),
          }).names,
        }),
      begins: (task, context, cluster) => [
        promotionBegun(
          context,
          cluster,
          context.input.instanceId,
          cluster.holdings?.timeline && task.beyondLsn
            ? { ...cluster.holdings.timeline, lsn: task.beyondLsn }
            : null,
        ),
      ],
      records: (result, context, cluster) => [
        {
          kind: 'cluster-moved',
          clusterId: cluster.clusterId,
          primary: context.input.instanceId,
          former: {
            instanceId: formerOf(context, cluster).instanceId,
            memberRole: 'standby',
            fence: null,
          },
          synchronous: syncAfter(context, cluster),
          promoted: promotedAs(result, cluster.members),
        },
      ],
    }),
    rejoin: tasksStep({
      deadlineMs: 120_000,
      tasks: (context, observed) => {
        const cluster = prepared(context, observed)
        const candidate = candidateOf(context, cluster)
        const former = formerOf(context, cluster)
        return [
          onHost(
            former,
            former.name,
            controlOf(cluster).follow(former.instanceId, upstreamOf(candidate, former)),
          ),
          ...othersOf(context, cluster).map((m) =>
            onHost(m, m.name, controlOf(cluster).repoint(m.instanceId, upstreamOf(candidate, m))),
          ),
        ]
      },
      optional: () => true,
      toleranceMs: 15_000,
    }),
    synchronous: taskStep('set-synchronous', {
      deadlineMs: 60_000,
      on: candidateOf,
      skip: (context, cluster) =>
        cluster.synchronous &&
        cluster.members.some((m) => whyNotAfter(context)(m) !== notFollowing(context)(m))
          ? null
          : { standbyNames: 'unchanged' },
      // commits must not wait for a member that did not come along
      task: (context, cluster) =>
        controlOf(cluster).setSynchronous(
          context.input.instanceId,
          standbysNamed(cluster, context.input.instanceId, whyNotAfter(context)).names,
        ),
    }),
    tidy: tasksStep({
      deadlineMs: 60_000,
      sequential: true,
      tasks: (context, observed) => {
        const cluster = prepared(context, observed)
        const former = formerOf(context, cluster)
        return [candidateOf(context, cluster), ...othersOf(context, cluster)].map((m) =>
          onHost(former, m.name, dismiss(cluster, former, m, true)),
        )
      },
      optional: () => true,
      toleranceMs: 15_000,
    }),
    observe: observeFollowing((context, cluster) =>
      [formerOf(context, cluster), ...othersOf(context, cluster)]
        .filter((m) => !leftBehind(context.results.rejoin).includes(m.name))
        .map((m) => m.instanceId),
    ),
    repair: pageRepairStep({ known: prepared }),
  },
  undo: (context, observed, why) => {
    const cluster = prepared(context, observed)
    // a standby that may have been promoted must not meet a primary that was restored
    if (context.step.name === 'promote' && !isRefuted(why)) return []
    if (context.results.promote?.timeline !== undefined || !context.results.check?.formerInstanceId) return []
    const former = formerOf(context, cluster)
    const candidate = candidateOf(context, cluster)
    return [
      { ...onHost(former, 'restore', controlOf(cluster).restore(former.instanceId)), after: 'demote' },
      ...[former, ...othersOf(context, cluster)].map((m) => ({
        ...onHost(candidate, `dismiss.${m.name}`, dismiss(cluster, candidate, m, true)),
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
