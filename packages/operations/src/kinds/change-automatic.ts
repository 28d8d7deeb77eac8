import {
  automaticBlockers,
  type ClusterMember,
  type ClusterObserved,
  type Fault,
  FaultError,
  floorCovers,
  HeldBack,
  type OperationInput,
  primaryToTell,
} from '@floe/domain'
import { refuseStandby } from '../guards'
import { controlOf, memberOf } from '../instance-control'
import { mayLookAgain } from '../look-again'
import { defineOperation, fail, type MemberTask, next, type StepContext, wait } from '../step'
import { tasksStep } from '../tasks-step'

/** Reports come every second. */
const SEEN_PATIENCE_MS = 15_000

type Input = OperationInput<'change-automatic'>
type Context = StepContext<'change-automatic'>

const onMembers = (
  cluster: ClusterObserved,
  task: (member: ClusterMember) => MemberTask['task'],
): MemberTask[] =>
  cluster.members
    .filter((m) => m.memberRole !== 'fenced')
    .map((m) => ({ id: m.name, hostId: m.hostId, hostName: m.hostName, task: task(m) }))

/** One that is away stays held back until its agent is ordered otherwise: it starts by an order then, which is no harm. */
const awayMayStay = (context: Context, fault: Fault) =>
  context.input.automatic === null && fault.code === 'agent.unreachable'

/** Why it cannot be turned on; null where it can, and for turning it off. */
export function whyNotAutomatic(
  cluster: ClusterObserved,
  { automatic }: Pick<Input, 'automatic'>,
): Fault | null {
  if (automatic === null) return null
  const [blocker] = automaticBlockers(cluster)
  if (blocker) return blocker
  const away = cluster.members.find(
    (m) => m.memberRole !== 'fenced' && (m.hostState !== 'online' || m.state !== 'running'),
  )
  if (away)
    return {
      code: 'automatic.member_away',
      message: `instance "${away.name}" is ${away.hostState === 'online' ? away.state : `on host "${away.hostName}", which does not answer`}`,
      detail: 'The agent of every member has to record that the member is held back after a restart.',
      hint: 'Bring it back, or remove it from the cluster.',
    }
  if (!primaryToTell(cluster))
    return {
      code: 'automatic.timeline_unknown',
      message: 'the timeline of the primary is not known yet',
      hint: 'Try again in a moment.',
    }
  return null
}

/**
 * Whether and how a cluster fails over automatically. Turned on, the floor comes first, then the record, then the agents are told
 * to hold members back: nobody is held back of a cluster that is not recorded as one that starts them. Turned off, it is the
 * other way round.
 */
export const changeAutomatic = defineOperation('change-automatic', {
  guard: async (asked) => {
    await refuseStandby(asked)
    const cluster = await asked.readCluster()
    const [blocker] = asked.input.automatic && cluster ? automaticBlockers(cluster) : []
    if (blocker) throw new FaultError(blocker)
  },
  plan: ({ automatic }) =>
    automatic === null
      ? [
          { name: 'check', title: 'Record that automatic failover is off' },
          { name: 'tell', title: 'Allow agents to restart members automatically again' },
          { name: 'floor', title: 'Remove the commit floor' },
        ]
      : [
          { name: 'check', title: 'Check that automatic failover would be safe' },
          { name: 'floor', title: 'Set the commit floor on every member' },
          { name: 'tell', title: 'Hold members back: they start as a primary only by an order' },
          { name: 'observe', title: 'Wait until the floor is in force' },
        ],
  steps: {
    check: {
      deadlineMs: 30_000,
      async run(context) {
        const cluster = await context.readCluster()
        const { automatic } = context.input
        const refusal = whyNotAutomatic(cluster, context.input)
        if (refusal && mayLookAgain(context)) return wait(100, `checking again: ${refusal.message}`)
        if (refusal) return fail(refusal)
        return next(
          {},
          {
            records: automatic
              ? []
              : [{ kind: 'cluster-automatic', clusterId: cluster.clusterId, automatic: null }],
          },
        )
      },
    },
    floor: tasksStep({
      deadlineMs: 60_000,
      tasks: ({ input: { automatic } }, cluster) =>
        onMembers(cluster, (m) =>
          controlOf(cluster).setCommitFloor(
            m.instanceId,
            automatic && { commitMode: cluster.commitMode, receiverTimeoutMs: automatic.afterMs },
          ),
        ),
      optional: (_task, fault, context) => awayMayStay(context, fault),
      records: (_results, { input: { automatic } }, cluster) =>
        automatic ? [{ kind: 'cluster-automatic', clusterId: cluster.clusterId, automatic }] : [],
    }),
    tell: tasksStep({
      deadlineMs: 60_000,
      tasks: ({ input: { automatic } }, cluster) => {
        const primary = primaryToTell(cluster)
        if (!primary) return []
        const heldBack = automatic && HeldBack.parse(automatic)
        return onMembers(cluster, (m) =>
          controlOf(cluster).keepPrimary(m.instanceId, { ...primary, heldBack }),
        )
      },
      optional: (_task, fault, context) => awayMayStay(context, fault),
    }),
    observe: {
      deadlineMs: 60_000,
      async run(context) {
        const cluster = await context.readCluster()
        const { replication } = memberOf(cluster, cluster.primaryInstanceId)
        const inForce = floorCovers(replication?.commitFloor, cluster.commitMode)
        const waited = context.now.getTime() - context.step.startedAt.getTime()
        if (inForce || context.cancelAskedAt || waited > SEEN_PATIENCE_MS)
          return next(
            { inForce },
            inForce ? {} : { log: [{ text: 'the floor is not reported to be in force yet' }] },
          )
        return wait(100, 'waiting until it is reported to be in force')
      },
    },
  },
})
