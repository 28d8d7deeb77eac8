import type { TaskResult } from '@floe/agent-contract'
import {
  afterRoleChange,
  type ClusterMember,
  type ClusterObserved,
  exactBytes,
  type Fault,
  InstanceId,
  judgeCandidates,
  judgeLoss,
  type Lsn,
  lsnDistance,
  operationStages,
} from '@floe/domain'
import { admit, controlOf, memberOf, namesFor, upstreamOf } from '../instance-control'
import { mayLookAgain } from '../look-again'
import { observeFollowing } from '../observe-following'
import { pageRepairStep } from '../page-repair'
import { defineOperation, fail, type MemberTask, next, type StepContext, wait } from '../step'
import { leftBehind } from '../switchover-cluster/switchover-cluster'
import { taskStep } from '../task-step'
import { tasksStep } from '../tasks-step'

const QUICK_MS = 15
/** A host that a person said is out of reach is tried this long all the same. */
const FENCE_TRY_MS = 1_500
/** One without which it cannot go on is waited for as long as an agent may take to be back. */
const NEEDED_MS = 15_000

type Context = StepContext<'failover-cluster'>

const candidateOf = ({ input }: Context, cluster: ClusterObserved) => memberOf(cluster, input.instanceId)
const formerOf = ({ results }: Context, cluster: ClusterObserved) =>
  memberOf(cluster, String(results.check?.formerInstanceId))
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
type Fenced = TaskResult<'fence-instance'> & { fault?: Fault }
const fencedOf = (context: Context, cluster: ClusterObserved) =>
  context.results.fence?.[formerOf(context, cluster).name] as Fenced | undefined
const syncAfter = (context: Context, cluster: ClusterObserved) =>
  cluster.primaryInstanceId === context.input.instanceId
    ? cluster.synchronous
    : afterRoleChange(
        cluster.synchronous,
        context.input.instanceId,
        InstanceId.parse(String(context.results.check?.formerInstanceId)),
      )

/**
 * The cluster as it is once no standby receives any more: positions of the isolated ones are final, whoever did not answer
 * counts as unseen, and the former primary as gone.
 */
export function isolatedCluster(
  cluster: ClusterObserved,
  formerInstanceId: string,
  isolated: Record<string, unknown>,
): ClusterObserved {
  return {
    ...cluster,
    members: cluster.members.map((m) => {
      if (m.instanceId === formerInstanceId) return { ...m, state: 'stopped' as const, role: null }
      const seen = isolated[m.name] as (TaskResult<'isolate-standby'> & { fault?: Fault }) | undefined
      if (!seen || seen.fault) return { ...m, state: 'unknown' as const }
      return {
        ...m,
        hostState: 'online' as const,
        state: 'running' as const,
        replication: m.replication && {
          ...m.replication,
          endLsn: seen.endLsn,
          replayedLsn: seen.replayedLsn,
        },
      }
    }),
  }
}

/** What a failover to the candidate would lose, and whether that was accepted; a fault where not. */
export function judgeAcceptance(
  cluster: ClusterObserved,
  candidate: ClusterMember,
  endOfWal: Lsn | null,
  acceptLoss: number | 'unknown' | null,
): { lossBytes: number | null; fault: Fault | null } {
  const verdict = judgeLoss(cluster, candidate)
  if (verdict.lossless) return { lossBytes: 0, fault: null }
  const distance = lsnDistance(candidate.replication?.endLsn, endOfWal)
  const lossBytes = distance === null ? null : Math.max(0, distance)
  if (lossBytes === 0 || acceptLoss === 'unknown') return { lossBytes, fault: null }
  if (acceptLoss !== null && lossBytes !== null && lossBytes <= acceptLoss) return { lossBytes, fault: null }
  if (verdict.blocker && acceptLoss === null) return { lossBytes, fault: verdict.blocker }
  return {
    lossBytes,
    fault: {
      code: 'failover.loss_not_accepted',
      message:
        lossBytes === null
          ? 'how much would be lost is unknown'
          : `${exactBytes(lossBytes)} of WAL would be lost`,
      detail:
        acceptLoss === null
          ? 'No loss was accepted.'
          : `At most ${exactBytes(acceptLoss as number)} were accepted.`,
      hint:
        lossBytes === null
          ? 'Accept an unknown loss, or bring the host of the primary back.'
          : `Accept a loss of ${lossBytes} bytes, or choose another standby.`,
    },
  }
}

/**
 * A standby takes over from a primary that is gone, or has to go, because a person said so. First the former primary is
 * fenced, then no standby receives anything more: only then it is certain who holds what, and only then one is promoted.
 */
export const failoverCluster = defineOperation('failover-cluster', {
  retryAfresh: true,
  plan: () => operationStages['failover-cluster'].map(({ name, title }) => ({ name, title })),
  steps: {
    check: {
      deadlineMs: 30_000,
      async run(context) {
        const cluster = await context.readCluster()
        const { input } = context
        const refuse = (fault: Fault) =>
          mayLookAgain(context) ? wait(100, `looking again: ${fault.message}`) : fail(fault)
        const candidate = judgeCandidates(cluster, 'failover').find((c) => c.instanceId === input.instanceId)
        if (!candidate) return fail({ code: 'cluster.no_member', message: 'no such standby in the cluster' })
        // a forecast of a loss is decided by `verify`, where positions are final
        const forecast = ['candidate.behind', 'candidate.quorum_unseen', 'candidate.not_synchronous']
        const blocker = candidate.blockers.find(
          (b) => !(forecast.includes(b.code) && input.acceptLoss !== null),
        )
        if (blocker) return refuse(blocker)
        const former = memberOf(cluster, cluster.primaryInstanceId)
        if (former.hostState !== 'online' && input.unreachableHost !== former.hostName)
          return refuse({
            code: 'failover.host_unreachable',
            message: `host "${former.hostName}" cannot be reached, so its primary cannot be fenced`,
            detail: `If "${former.name}" still runs there, clients that reach it could go on writing to it until its host answers.`,
            hint: `Type the name of the host, "${former.hostName}", to fail over all the same.`,
          })
        if (!candidate.lossless && input.acceptLoss === null)
          return refuse({
            code: 'failover.loss_not_accepted',
            message:
              candidate.expectedLossBytes === null
                ? 'how much would be lost is unknown'
                : `about ${exactBytes(candidate.expectedLossBytes)} of WAL would be lost`,
            detail: candidate.notes[0] ?? null,
            hint: 'State the loss that is accepted, in bytes.',
          })
        const others = cluster.members.filter(
          (m) =>
            m.instanceId !== input.instanceId &&
            m.instanceId !== cluster.primaryInstanceId &&
            m.memberRole === 'standby',
        )
        return next(
          {
            formerInstanceId: cluster.primaryInstanceId,
            otherInstanceIds: others.map((m) => m.instanceId),
            lastKnownLsn: former.replication?.endLsn ?? null,
          },
          { log: [{ text: `"${candidate.name}" takes over from "${former.name}"` }] },
        )
      },
    },
    fence: tasksStep({
      deadlineMs: 60_000,
      tasks: (context, cluster) => {
        const former = formerOf(context, cluster)
        const reason = `"${candidateOf(context, cluster).name}" took over`
        return [onHost(former, former.name, controlOf(cluster).fence(former.instanceId, reason))]
      },
      tolerate: () => true,
      toleranceMs: ({ hostName }, { input }) =>
        input.unreachableHost === hostName ? FENCE_TRY_MS : NEEDED_MS,
    }),
    isolate: tasksStep({
      deadlineMs: 60_000,
      tasks: (context, cluster) =>
        [candidateOf(context, cluster), ...othersOf(context, cluster)].map((m) =>
          onHost(m, m.name, controlOf(cluster).isolate(m.instanceId)),
        ),
      tolerate: () => true,
      // of the others those count that were heard of lately: they may hold what the candidate does not
      toleranceMs: ({ task, hostId }, { input }, cluster) =>
        task.instanceId === input.instanceId ||
        cluster.members.some((m) => m.hostId === hostId && m.hostState === 'online')
          ? NEEDED_MS
          : FENCE_TRY_MS,
    }),
    verify: {
      deadlineMs: 30_000,
      async run(context) {
        const { input, results } = context
        const observed = await context.readCluster()
        const former = formerOf(context, observed)
        const fenced = fencedOf(context, observed)
        if (fenced?.fault && input.unreachableHost !== former.hostName)
          return fail({
            code: 'failover.not_fenced',
            message: `"${former.name}" could not be fenced`,
            detail: [fenced.fault.message, fenced.fault.detail].filter(Boolean).join(': '),
            hint: `Type the name of its host, "${former.hostName}", if it is out of reach and you take that on.`,
          })
        const cluster = isolatedCluster(observed, former.instanceId, results.isolate ?? {})
        const candidate = candidateOf(context, cluster)
        if (candidate.state === 'unknown') {
          const { fault } = (results.isolate?.[candidate.name] ?? {}) as { fault?: Fault }
          return fail(fault ?? { code: 'candidate.silent', message: `"${candidate.name}" does not answer` })
        }
        const end = fenced?.fault ? null : (fenced?.endLsn ?? null)
        const { lossBytes, fault } = judgeAcceptance(cluster, candidate, end, input.acceptLoss)
        if (fault) return fail(fault)
        return next(
          { lossBytes, fenced: !fenced?.fault, candidateLsn: candidate.replication?.endLsn ?? null },
          {
            log: [
              {
                text:
                  lossBytes === null
                    ? 'how much is lost is unknown; that was accepted'
                    : lossBytes === 0
                      ? `"${candidate.name}" holds every commit that was acknowledged`
                      : `${exactBytes(lossBytes)} of WAL are lost; that was accepted`,
              },
              ...(fenced?.fault
                ? [{ text: `"${former.name}" is not fenced: host "${former.hostName}" is out of reach` }]
                : []),
            ],
          },
        )
      },
    },
    slots: tasksStep({
      deadlineMs: 60_000,
      sequential: true,
      tasks: (context, cluster) => {
        const candidate = candidateOf(context, cluster)
        const gone = leftBehind(context.results.isolate)
        return othersOf(context, cluster)
          .filter((m) => !gone.includes(m.name))
          .map((m) => onHost(candidate, m.name, admit(candidate, m.name, { verifier: null, slot: true })))
      },
    }),
    promote: taskStep('promote-instance', {
      deadlineMs: 30_000,
      pollMs: QUICK_MS,
      on: candidateOf,
      task: (context, cluster) =>
        controlOf(cluster).promote(context.input.instanceId, {
          beyondLsn: null,
          atLeastLsn: (context.results.verify?.candidateLsn ?? null) as Lsn | null,
          standbyNames: namesFor(
            cluster,
            context.input.instanceId,
            (m) => isBack(context, m),
            syncAfter(context, cluster),
          ),
        }),
      records: (_result, context, cluster) => [
        {
          kind: 'cluster-moved',
          clusterId: cluster.clusterId,
          primary: context.input.instanceId,
          former: {
            instanceId: formerOf(context, cluster).instanceId,
            memberRole: 'fenced',
            fenceOrdered: fencedOf(context, cluster)?.fault !== undefined,
          },
          synchronous: syncAfter(context, cluster),
        },
      ],
    }),
    repoint: tasksStep({
      deadlineMs: 120_000,
      tasks: (context, cluster) => {
        const candidate = candidateOf(context, cluster)
        return othersOf(context, cluster)
          .filter((m) => isBack(context, m))
          .map((m) =>
            onHost(m, m.name, controlOf(cluster).repoint(m.instanceId, upstreamOf(candidate, m.name))),
          )
      },
      tolerate: () => true,
      toleranceMs: 10_000,
    }),
    synchronous: taskStep('set-synchronous', {
      deadlineMs: 60_000,
      on: candidateOf,
      skip: ({ results }, cluster) =>
        cluster.synchronous && leftBehind(results.repoint).length > 0 ? null : { standbyNames: 'unchanged' },
      task: (context, cluster) =>
        controlOf(cluster).setSynchronous(
          context.input.instanceId,
          namesFor(
            cluster,
            context.input.instanceId,
            (m) => isBack(context, m) && !leftBehind(context.results.repoint).includes(m.name),
          ),
        ),
    }),
    observe: observeFollowing((context, cluster) =>
      othersOf(context, cluster)
        .filter((m) => isBack(context, m) && !leftBehind(context.results.repoint).includes(m.name))
        .map((m) => m.instanceId),
    ),
    repair: pageRepairStep(),
  },
  undo: (context, cluster) => {
    if (context.step.name === 'promote' || context.results.promote?.timeline !== undefined) return []
    if (!context.results.check?.formerInstanceId) return []
    const former = formerOf(context, cluster)
    const fenced = fencedOf(context, cluster)
    const control = controlOf(cluster)
    return [
      // a primary that ran before is the primary again; one that was gone stays fenced and waits for the next try
      ...(fenced?.wasRunning
        ? [{ ...onHost(former, 'restore', control.restore(former.instanceId)), after: 'fence' }]
        : []),
      ...[candidateOf(context, cluster), ...othersOf(context, cluster)].map((m) => ({
        ...onHost(m, `repoint.${m.name}`, {
          ...control.repoint(m.instanceId, upstreamOf(former, m.name)),
          wait: false,
        }),
        after: 'isolate',
      })),
    ]
  },
})

/** A standby that answered when it was isolated; the former primary is gone. */
function isBack(context: Context, m: ClusterMember): boolean {
  const isolated = context.results.isolate ?? {}
  return m.name in isolated && !leftBehind(isolated).includes(m.name)
}
