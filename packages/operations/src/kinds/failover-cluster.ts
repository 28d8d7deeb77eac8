import type { TaskResult } from '@floe/agent-contract'
import {
  type Answer,
  afterRoleChange,
  type ClusterMember,
  type ClusterObserved,
  doubtSentences,
  exactBytes,
  type Fault,
  holdingsRecordOf,
  holds,
  InstanceId,
  judgeCandidates,
  judgeHoldings,
  type Lsn,
  lossDoubts,
  operationRecords,
  type PromotionBegun,
  promotedAs,
  proofSentence,
  reportedEnd,
  unsettledMembers,
  type Verdict,
  type WalPosition,
} from '@floe/domain'
import { refusePrimary } from '../guards'
import { admit, controlOf, leftOutLines, memberOf, standbysNamed, upstreamOf } from '../instance-control'
import { mayLookAgain, waitedMs } from '../look-again'
import { lossForecast } from '../loss-forecast'
import { observeFollowing } from '../observe-following'
import { pageRepairStep } from '../page-repair'
import { promoteStep } from '../promote-step'
import { isRefuted, promotionBegun } from '../promotion-record'
import { promotionsOver } from '../settle-promotions'
import { defineOperation, fail, type MemberTask, next, type StepContext, wait } from '../step'
import { taskStep } from '../task-step'
import { tasksStep } from '../tasks-step'
import { leftBehind } from './switchover-cluster'

/** A host that a person said is out of reach is tried this long all the same. */
const FENCE_TRY_MS = 1_000
/** Reports of standbys whose primary has just ended are of different moments; two readings later they report their ends. */
const REPORTS_SETTLE_MS = 3_000

type Context = StepContext<'failover-cluster'>

/** Who takes over: as `verify` chose, before it whom the check began with. */
const candidateIdOf = ({ input, results }: Pick<Context, 'input' | 'results'>): InstanceId =>
  InstanceId.parse(results.verify?.instanceId ?? results.check?.instanceId ?? input.instanceId)
const candidateOf = (context: Context, cluster: ClusterObserved) => memberOf(cluster, candidateIdOf(context))
const formerOf = ({ results }: Context, cluster: ClusterObserved) =>
  memberOf(cluster, String(results.check?.formerInstanceId))
/** Standbys besides the candidate; if another candidate was chosen, the first one is among them. */
function othersOf(context: Context, cluster: ClusterObserved): ClusterMember[] {
  const { check } = context.results
  const ids = [
    ...((check?.otherInstanceIds ?? []) as string[]),
    check?.instanceId ?? context.input.instanceId,
  ]
  return cluster.members.filter((m) => ids.includes(m.instanceId) && m.instanceId !== candidateIdOf(context))
}
const onHost = (m: ClusterMember, id: string, task: MemberTask['task']): MemberTask => ({
  id,
  hostId: m.hostId,
  hostName: m.hostName,
  task,
})
type Fenced = TaskResult<'fence-instance'> & { fault?: Fault }
type Isolated = TaskResult<'isolate-standby'> & { fault?: Fault }
/** Hosts that a person said are out of reach. */
const typedHosts = ({ input }: Pick<Context, 'input'>): string[] => [
  ...(input.unreachableHost === null ? [] : [input.unreachableHost]),
  ...input.alsoUnreachable,
]
/** The members to fence: the former primary, and any that may have been promoted without the console's knowledge. */
function toFence(context: Context, cluster: ClusterObserved): ClusterMember[] {
  const ids = (context.results.check?.possibleInstanceIds ?? []) as string[]
  return [formerOf(context, cluster), ...cluster.members.filter((m) => ids.includes(m.instanceId))]
}
const fencedAs = ({ results }: Context, { name }: ClusterMember) =>
  results.fence?.[name] as Fenced | undefined
const fencedOf = (context: Context, cluster: ClusterObserved) => fencedAs(context, formerOf(context, cluster))
const isSeenAsStandby = (m: ClusterMember) =>
  m.hostState === 'online' && m.state === 'running' && m.role === 'standby'
const isSeenAsPrimary = (m: ClusterMember) =>
  m.hostState === 'online' && m.state === 'running' && m.role === 'primary'
/**
 * Who may be a primary beside the one that was promoted: those that were fenced as such, and any member that the failover passed by
 * though the promotion of it may still take place.
 */
export function possibleBeside(
  context: Pick<Context, 'input' | 'results'>,
  cluster: Pick<ClusterObserved, 'holdings'>,
): string[] {
  const { possibleInstanceIds = [], promotionsOver: over = [] } = (context.results.check ?? {}) as {
    possibleInstanceIds?: string[]
    promotionsOver?: string[]
  }
  const begun = (cluster.holdings?.promotions ?? []).map((p) => p.instanceId)
  const passedBy = begun.filter((id) => id !== candidateIdOf(context) && !over.includes(id))
  return [...new Set([...possibleInstanceIds, ...passedBy])]
}
const isOver = (m: ClusterMember, { holdings }: ClusterObserved, over: readonly PromotionBegun[]) =>
  (holdings?.promotions ?? []).every((p) => p.instanceId !== m.instanceId || over.includes(p))
/** The newest timeline that any member is known to be on. A former primary on a newer one is not the one that is meant. */
const newestTimeline = (cluster: ClusterObserved): number | null =>
  cluster.members.reduce<number | null>(
    (newest, { timeline }) => (timeline === null ? newest : Math.max(timeline, newest ?? 0)),
    null,
  )
/** What an order to fence a member is about: who was promoted unseen may be one timeline further than anybody seen. */
function fenceTimeline(context: Context, cluster: ClusterObserved, m: ClusterMember): number | null {
  const newest = newestTimeline(cluster)
  return newest === null || m === formerOf(context, cluster) ? newest : newest + 1
}
/**
 * What the orders that a promotion leaves behind are about. Whatever is on an older timeline than the new primary's was left
 * behind by it. A candidate that had not come to its primary's timeline begins one of the same number, or of a lower one:
 * so the orders reach at least the timeline of that primary, and the one that a member promoted from it began.
 */
export function fenceOrders(
  { holdings }: Pick<ClusterObserved, 'holdings'>,
  promoted: number,
): { former: { timeline: number }; possible: { timeline: number } } {
  const before = holdings?.timeline?.timeline ?? 0
  return {
    former: { timeline: Math.max(promoted - 1, before) },
    possible: { timeline: Math.max(promoted, before + 1) },
  }
}
const syncAfter = (context: Context, cluster: ClusterObserved) =>
  cluster.primaryInstanceId === candidateIdOf(context)
    ? cluster.synchronous
    : afterRoleChange(
        cluster.synchronous,
        candidateIdOf(context),
        InstanceId.parse(String(context.results.check?.formerInstanceId)),
      )

/** What members answered the steps `fence` and `isolate`; a member without an answer counts as silent. */
export function answersOf(
  cluster: ClusterObserved,
  results: Readonly<Record<string, Record<string, unknown>>>,
): Answer[] {
  const over = (results.check?.promotionsOver ?? []) as string[]
  return cluster.members.map((m): Answer => {
    const of = { instanceId: m.instanceId, name: m.name, hostName: m.hostName }
    const fenced = results.fence?.[m.name] as Fenced | undefined
    if (fenced && !fenced.fault) return { ...of, state: 'fenced', end: endOf(fenced) }
    const isolated = results.isolate?.[m.name] as Isolated | undefined
    if (!isolated || isolated.fault) return { ...of, state: 'silent', end: null }
    if (isolated.inRecovery === false) return { ...of, state: 'primary', end: endOf(isolated) }
    const promotionOver = over.includes(m.instanceId)
    return { ...of, state: 'isolated', end: endOf(isolated), ...(promotionOver ? { promotionOver } : {}) }
  })
}

const endOf = ({ endLsn, timeline, ancestors }: Partial<TaskResult<'isolate-standby'>>): WalPosition | null =>
  reportedEnd({ endLsn: endLsn ?? null, timeline: timeline ?? null, ancestors })

/** What a failover would lose, and whether that was accepted; a fault where not. */
export function judgeAcceptance(
  verdict: Verdict,
  acceptLoss: number | 'unknown' | null,
): { lossBytes: number | null; fault: Fault | null } {
  if (verdict.kind === 'proven') return { lossBytes: 0, fault: null }
  const lossBytes = verdict.kind === 'bounded' ? verdict.lossBytes : null
  if (acceptLoss === 'unknown') return { lossBytes, fault: null }
  if (acceptLoss !== null && lossBytes !== null && lossBytes <= acceptLoss) return { lossBytes, fault: null }
  const doubt = verdict.doubts.find((d) => d.code !== 'cluster.asynchronous')
  if (doubt && acceptLoss === null) return { lossBytes, fault: doubt }
  return {
    lossBytes,
    fault: {
      code: 'failover.loss_not_accepted',
      message:
        lossBytes === null
          ? 'how much would be lost is unknown'
          : `${exactBytes(lossBytes)} of WAL would be lost`,
      detail: [
        acceptLoss === null
          ? 'No loss was accepted.'
          : `At most ${exactBytes(acceptLoss as number)} were accepted.`,
        ...verdict.doubts.map(({ code, message }) => doubtSentences({ code, message })),
      ].join(' '),
      hint:
        lossBytes === null
          ? 'Accept an unknown loss, or bring the host of the primary back.'
          : `Accept a loss of ${lossBytes} bytes, or choose another standby.`,
    },
  }
}

/** What the log says of a verdict that the failover goes on with. */
function verdictLines(verdict: Verdict): { text: string }[] {
  if (verdict.kind === 'proven')
    return [{ text: proofSentence(verdict.proof) }, ...verdict.proof.because.map((text) => ({ text }))]
  const accepted =
    verdict.kind === 'bounded'
      ? `at most ${exactBytes(verdict.lossBytes)} of WAL are lost; that was accepted`
      : 'how much is lost is unknown; that was accepted'
  return [{ text: accepted }, ...verdict.doubts.map((doubt) => ({ text: doubtSentences(doubt) }))]
}

/**
 * A standby takes over from a primary that is gone, or has to go, because a person said so. First the former primary is
 * fenced, then no standby receives anything more: only then it is certain who holds what, and only then one is promoted.
 */
export const failoverCluster = defineOperation('failover-cluster', {
  guard: refusePrimary,
  retryAfresh: true,
  plan: () => operationRecords['failover-cluster'].stages.map(({ name, title }) => ({ name, title })),
  steps: {
    check: {
      deadlineMs: 30_000,
      async run(context) {
        const cluster = await context.readCluster()
        const { input } = context
        const waitedForReports = waitedMs(context, context.step.startedAt)
        const refuse = (fault: Fault) =>
          mayLookAgain(context) || (fault.code === 'candidate.behind' && waitedForReports < REPORTS_SETTLE_MS)
            ? wait(100, `looking again: ${fault.message}`)
            : fail(fault)
        const candidates = judgeCandidates(cluster, 'failover')
        const named = candidates.find((c) => c.instanceId === input.instanceId)
        // without a named standby, the one chosen before positions are final is only the first candidate
        const candidate = input.choose && named?.blockers.length !== 0 ? candidates[0] : named
        if (!candidate) return fail({ code: 'cluster.no_member', message: 'no such standby in the cluster' })
        // a forecast of a loss is decided by `verify`, where positions are final
        const blocker = candidate.blockers.find(
          (b) => !(lossDoubts.includes(b.code) && input.acceptLoss !== null),
        )
        if (blocker) return refuse(blocker)
        const former = memberOf(cluster, cluster.primaryInstanceId)
        const unsettled = unsettledMembers(cluster).filter((m) => m.instanceId !== candidate.instanceId)
        for (const m of [former, ...unsettled])
          if (m.hostState !== 'online' && !typedHosts(context).includes(m.hostName))
            return refuse({
              code: 'failover.host_unreachable',
              message:
                m === former
                  ? `host "${m.hostName}" cannot be reached, so its primary cannot be fenced`
                  : `host "${m.hostName}" cannot be reached, and its instance "${m.name}" may have been promoted`,
              detail: `If "${m.name}" still runs there, clients that reach it could go on writing to it until its host answers.`,
              hint: `To fail over anyway, type the name of the host, "${m.hostName}".`,
            })
        // a fence ends it with what only it acknowledged, and a refusal later on could not bring it back
        const promoted = unsettled.find((m) => isSeenAsPrimary(m))
        if (promoted && input.acceptLoss !== 'unknown')
          return refuse({
            code: 'failover.second_primary',
            message: `instance "${promoted.name}" was promoted and accepts writes`,
            detail: 'What it has acknowledged would be lost.',
            hint: `Fail over to "${promoted.name}", or accept an unknown loss.`,
          })
        const over = await promotionsOver(context, cluster)
        // one that is seen as a standby is asked what it holds; any other may be a primary
        const possible = unsettled.filter((m) => !(isSeenAsStandby(m) && isOver(m, cluster, over)))
        if (!candidate.lossless && input.acceptLoss === null)
          return refuse({
            code: 'failover.loss_not_accepted',
            ...lossForecast(candidate.expectedLossBytes),
            detail: candidate.notes[0] ?? null,
          })
        const others = cluster.members.filter(
          (m) =>
            m.instanceId !== candidate.instanceId &&
            m.instanceId !== cluster.primaryInstanceId &&
            m.memberRole === 'standby' &&
            !possible.includes(m),
        )
        return next(
          {
            instanceId: candidate.instanceId,
            formerInstanceId: cluster.primaryInstanceId,
            otherInstanceIds: others.map((m) => m.instanceId),
            possibleInstanceIds: possible.map((m) => m.instanceId),
            promotionsOver: over.map((p) => p.instanceId),
            lastKnownLsn: former.replication?.endLsn ?? null,
          },
          {
            log: [
              ...(input.because ?? []).map((text) => ({ text })),
              {
                text: input.choose
                  ? `the successor of "${former.name}" is chosen once positions are final; by the last reported positions it is "${candidate.name}"`
                  : `"${candidate.name}" takes over from "${former.name}"`,
              },
            ],
          },
        )
      },
    },
    fence: tasksStep({
      deadlineMs: 60_000,
      tasks: (context, cluster) => {
        const reason = context.input.choose
          ? 'another member took over'
          : `"${candidateOf(context, cluster).name}" took over`
        return toFence(context, cluster).map((m) =>
          onHost(
            m,
            m.name,
            controlOf(cluster).fence(m.instanceId, reason, fenceTimeline(context, cluster, m)),
          ),
        )
      },
      optional: () => true,
      toleranceMs: ({ hostName }, context) =>
        typedHosts(context).includes(hostName) ? FENCE_TRY_MS : context.patience.neededMs,
    }),
    isolate: tasksStep({
      deadlineMs: 60_000,
      tasks: (context, cluster) =>
        [candidateOf(context, cluster), ...othersOf(context, cluster)].map((m) =>
          onHost(m, m.name, controlOf(cluster).isolate(m.instanceId)),
        ),
      optional: () => true,
      // of the others those count that were heard of lately: they may hold what the candidate does not
      toleranceMs: ({ task, hostId }, context, cluster) =>
        task.instanceId === candidateIdOf(context) ||
        cluster.members.some((m) => m.hostId === hostId && m.hostState === 'online')
          ? context.patience.neededMs
          : FENCE_TRY_MS,
    }),
    verify: {
      deadlineMs: 30_000,
      async run(context) {
        const { input, results } = context
        const cluster = await context.readCluster()
        const fences = toFence(context, cluster).map((m) => ({ m, fault: fencedAs(context, m)?.fault }))
        for (const { m, fault } of fences) {
          // that it answers, and is newer than what is known here, is no reason to take over without it
          if (fault?.code === 'fence.newer_timeline') return fail(fault)
          if (fault && !typedHosts(context).includes(m.hostName))
            return fail({
              code: 'failover.not_fenced',
              message: `"${m.name}" could not be fenced`,
              detail: [fault.message, fault.detail].filter(Boolean).join(': '),
              hint: `If the host is unreachable and you accept that risk, type its name, "${m.hostName}".`,
            })
        }
        const answers = answersOf(cluster, results)
        const choice = chooseCandidate(cluster, answers, {
          instanceIds: input.choose ? choosable(context, cluster) : [candidateIdOf(context)],
          acceptLoss: input.acceptLoss,
        })
        const instanceId = choice?.instanceId ?? candidateIdOf(context)
        const second = answers.find((a) => a.state === 'primary' && a.instanceId !== instanceId)
        if (second)
          return fail({
            code: 'failover.second_primary',
            message: `instance "${second.name}" accepts writes`,
            detail: 'It was promoted without the console’s knowledge.',
            hint: `Fail over to "${second.name}", or try again: the next attempt fences it.`,
          })
        const candidate = memberOf(cluster, instanceId)
        if (!choice) {
          const { fault } = (results.isolate?.[candidate.name] ?? {}) as { fault?: Fault }
          return fail(fault ?? { code: 'candidate.silent', message: `"${candidate.name}" does not answer` })
        }
        const { verdict, lossBytes, fault, answer } = choice
        if (fault) return fail(fault)
        const { leftOut } = standbysNamed(cluster, instanceId, whyNotAfter(results, answer.end), {
          sync: syncAfter({ ...context, results: { ...results, verify: { instanceId } } }, cluster),
        })
        const unfenced = fences.filter((f) => f.fault)
        return next(
          {
            instanceId,
            lossBytes,
            verdict,
            fenced: unfenced.length === 0,
            candidateLsn: answer.state === 'isolated' ? (answer.end?.lsn ?? null) : null,
            candidateEnd: answer.end,
            leftOut,
          },
          {
            log: [
              ...(input.choose ? [{ text: `"${candidate.name}" takes over` }] : []),
              ...verdictLines(verdict),
              ...leftOutLines(leftOut),
              ...unfenced.map(({ m }) => ({
                text: `"${m.name}" is not fenced: host "${m.hostName}" is unreachable`,
              })),
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
          .map((m) => onHost(candidate, m.name, admit(cluster, candidate, m, { verifier: null, slot: true })))
      },
    }),
    promote: promoteStep({
      on: candidateOf,
      task: (context, cluster) =>
        controlOf(cluster).promote(candidateIdOf(context), {
          beyondLsn: null,
          atLeastLsn: (context.results.verify?.candidateLsn ?? null) as Lsn | null,
          ofCluster: true,
          standbyNames: standbysNamed(
            cluster,
            candidateIdOf(context),
            whyNotAfter(context.results, candidateEndOf(context)),
            { sync: syncAfter(context, cluster) },
          ).names,
        }),
      begins: (_task, context, cluster) => [
        promotionBegun(context, cluster, candidateIdOf(context), candidateEndOf(context)),
      ],
      records: (result, context, cluster) => [
        {
          kind: 'cluster-moved',
          clusterId: cluster.clusterId,
          primary: candidateIdOf(context),
          former: {
            instanceId: formerOf(context, cluster).instanceId,
            memberRole: 'fenced',
            fence: fencedOf(context, cluster)?.fault ? fenceOrders(cluster, result.timeline).former : null,
          },
          // fenced again where they were: that they are is only known for certain then
          fenceOrdered: {
            instanceIds: possibleBeside(context, cluster),
            ...fenceOrders(cluster, result.timeline).possible,
          },
          synchronous: syncAfter(context, cluster),
          promoted: promotedAs(result, cluster.members),
        },
      ],
    }),
    repoint: tasksStep({
      deadlineMs: 120_000,
      tasks: (context, cluster) => {
        const candidate = candidateOf(context, cluster)
        return othersOf(context, cluster)
          .filter((m) => isBack(context, m))
          .map((m) => onHost(m, m.name, controlOf(cluster).repoint(m.instanceId, upstreamOf(candidate, m))))
      },
      optional: () => true,
      toleranceMs: 10_000,
    }),
    synchronous: taskStep('set-synchronous', {
      deadlineMs: 60_000,
      on: candidateOf,
      skip: ({ results }, cluster) =>
        cluster.synchronous && leftBehind(results.repoint).length > 0 ? null : { standbyNames: 'unchanged' },
      task: (context, cluster) =>
        controlOf(cluster).setSynchronous(
          candidateIdOf(context),
          standbysNamed(cluster, candidateIdOf(context), (m) =>
            leftBehind(context.results.repoint).includes(m.name)
              ? 'it does not follow the new primary'
              : whyNotAfter(context.results, candidateEndOf(context))(m),
          ).names,
        ),
    }),
    observe: observeFollowing((context, cluster) =>
      othersOf(context, cluster)
        .filter((m) => isBack(context, m) && !leftBehind(context.results.repoint).includes(m.name))
        .map((m) => m.instanceId),
    ),
    repair: pageRepairStep(),
  },
  undo: (context, cluster, why) => {
    if (context.step.name === 'promote' && !isRefuted(why)) return []
    if (context.results.promote?.timeline !== undefined) return []
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
          ...control.repoint(m.instanceId, upstreamOf(former, m)),
          wait: false,
        }),
        after: 'isolate',
      })),
    ]
  },
})

const candidateEndOf = ({ results }: Pick<Context, 'results'>) =>
  (results.verify?.candidateEnd ?? null) as WalPosition | null

/** Why a member does not follow the new primary: it was fenced, did not answer, or has WAL that the candidate lacks. */
export const whyNotAfter =
  (results: Readonly<Record<string, Record<string, unknown>>>, candidateEnd: WalPosition | null) =>
  ({ name }: Pick<ClusterMember, 'name'>): string | null => {
    if (results.fence?.[name]) return 'it has to be rejoined first'
    const isolated = results.isolate?.[name] as Isolated | undefined
    if (!isolated || isolated.fault) return 'it did not answer'
    return holds(candidateEnd, endOf(isolated)) === false ? 'it has WAL that the new primary lacks' : null
  }

/** Standbys that may be chosen: nothing is in their way but what positions decide. */
const choosable = (context: Context, cluster: ClusterObserved): InstanceId[] =>
  judgeCandidates(cluster, 'failover')
    .filter((c) => c.blockers.every((b) => lossDoubts.includes(b.code)))
    .map((c) => c.instanceId)
    .filter((id) =>
      [candidateOf(context, cluster), ...othersOf(context, cluster)].some((m) => m.instanceId === id),
    )

type Choice = {
  instanceId: InstanceId
  answer: Answer
  verdict: Verdict
  lossBytes: number | null
  /** Why it is not accepted. */
  fault: Fault | null
}

/**
 * Of these the one that takes over, by answers that are final: whose loss is proven to be none, else accepted and least,
 * then the member that has no other one ahead. The first where several are alike; undefined where none of them answered.
 */
export function chooseCandidate(
  cluster: ClusterObserved,
  answers: readonly Answer[],
  { instanceIds, acceptLoss }: { instanceIds: readonly InstanceId[]; acceptLoss: number | 'unknown' | null },
): Choice | undefined {
  const choices = instanceIds.flatMap((instanceId) => {
    const answer = answers.find((a) => a.instanceId === instanceId)
    if (!answer || answer.state === 'silent') return []
    const verdict = judgeHoldings(holdingsRecordOf(cluster), answers, instanceId)
    const asked = verdict.kind === 'proven' ? verdict.proof.asked : verdict.asked
    // a former primary that is further ahead than all counts alike for each
    const ahead = asked.filter(
      (a) => a.state === 'isolated' && a.relation !== 'same' && a.relation !== 'behind',
    )
    const { lossBytes, fault } = judgeAcceptance(verdict, acceptLoss)
    const rank = [
      fault ? 1 : 0,
      verdict.kind === 'proven' ? 0 : 1,
      lossBytes ?? Number.MAX_SAFE_INTEGER,
      ahead.length,
    ]
    return [{ rank, choice: { instanceId, answer, verdict, lossBytes, fault } }]
  })
  const better = (a: readonly number[], b: readonly number[]) =>
    a.reduce((found, of, i) => found || of - (b[i] as number), 0)
  return choices.sort((a, b) => better(a.rank, b.rank))[0]?.choice
}

/** A standby that answered when it was isolated; the former primary is gone. */
function isBack(context: Context, m: ClusterMember): boolean {
  const isolated = context.results.isolate ?? {}
  return m.name in isolated && !leftBehind(isolated).includes(m.name)
}
