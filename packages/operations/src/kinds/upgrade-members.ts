import {
  type ClusterMember,
  type ClusterObserved,
  type Fault,
  fault,
  type OperationInput,
} from '@floe/domain'
import { refusePrimary } from '../guards'
import { controlOf } from '../instance-control'
import { mayLookAgain } from '../look-again'
import { observeFollowing } from '../observe-following'
import { defineOperation, fail, type MemberTask, next, type StepBody, type StepContext, wait } from '../step'
import { tasksStep } from '../tasks-step'
import { switchoverCluster } from './switchover-cluster'

type Context = StepContext<'upgrade-members'>

/** A clean stop, a start, and for a standby all that it has to replay. An incident opens after that; the step goes on. */
const MOVE_DEADLINE_MS = 900_000
const SEEN_PATIENCE_MS = 20_000

const standbysIn = ({ members = [], primary }: Partial<OperationInput<'upgrade-members'>>) =>
  members.filter((name) => name !== primary)

function named(cluster: ClusterObserved, name: string): ClusterMember {
  const member = cluster.members.find((m) => m.name === name)
  if (member) return member
  throw fault('cluster.no_member', `cluster "${cluster.name}" has no member "${name}" any more`)
}

/** Members one after the other, so that at most one of them is down. */
const moveStep = (names: (input: Context['input']) => readonly string[]): StepBody<'upgrade-members'> =>
  tasksStep({
    deadlineMs: MOVE_DEADLINE_MS,
    sequential: true,
    tasks: ({ input }, cluster) =>
      names(input).map((name): MemberTask => {
        const { instanceId, hostId, hostName } = named(cluster, name)
        return { id: name, hostId, hostName, task: controlOf(cluster).upgrade(instanceId, input.build) }
      }),
    describe: ({ id }, fault) => ofMember(id, fault),
  })

const ofMember = (name: string, fault: Fault): Fault =>
  fault.code === 'task.cancelled' ? fault : { ...fault, message: `member "${name}": ${fault.message}` }

/** What has changed since the plan was made; null where nothing has. */
function whyOtherwise({ input }: Pick<Context, 'input'>, cluster: ClusterObserved): Fault | null {
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const hint = 'Check the plan again: "./floe host upgrade NAME --plan".'
  if (primary?.name !== input.primary)
    return {
      code: 'cluster.moved',
      message: `"${primary?.name ?? 'nobody'}" is the primary of cluster "${cluster.name}", no longer "${input.primary}"`,
      hint,
    }
  for (const name of input.members) {
    const member = cluster.members.find((m) => m.name === name)
    if (!member) return { code: 'cluster.no_member', message: `"${name}" has left the cluster`, hint }
    if (member.hostState !== 'online' || member.state !== 'running')
      return {
        code: 'instance.not_running',
        message: `"${name}" is ${member.hostState === 'online' ? member.state : 'on a host that does not answer'}`,
        detail: member.because,
        hint,
      }
  }
  return null
}

/** Standbys that followed before the primary is restarted. */
const followersBefore = ({ results }: Pick<Context, 'results'>) =>
  (results.compare?.following ?? []) as string[]

/**
 * Moves members of a cluster onto the engine that is installed on their host: its standbys first, one after the other; then,
 * where a standby can take over, by the steps of a switchover, and the former primary as the standby that it has become. One
 * that does not start on the new engine is started on its former one again by its agent, and the operation ends there:
 * members on two builds of one major version belong together as before.
 */
export const upgradeMembers = defineOperation('upgrade-members', {
  guard: (asked) => {
    if (asked.input.switchover) refusePrimary(asked)
  },
  retryAfresh: true,
  plan: (input, observed) => {
    const standbys = standbysIn(input)
    const primaryMoves = input.members?.includes(input.primary) ?? false
    return [
      { name: 'compare' as const, title: 'Compare the members with the plan' },
      ...(standbys.length > 0
        ? [
            { name: 'standbys' as const, title: `Restart on the installed engine: ${standbys.join(', ')}` },
            { name: 'observe-standbys' as const, title: 'Wait until they stream again' },
          ]
        : []),
      ...(primaryMoves && input.switchover
        ? [
            ...switchoverCluster.plan(input, observed),
            { name: 'former' as const, title: `Restart on the installed engine: ${input.primary}` },
            { name: 'observe-former' as const, title: 'Wait until it streams again' },
          ]
        : []),
      ...(primaryMoves && !input.switchover
        ? [
            { name: 'primary' as const, title: `Restart on the installed engine: ${input.primary}` },
            { name: 'observe-primary' as const, title: 'Wait until it runs and all standbys follow' },
          ]
        : []),
      { name: 'seen' as const, title: 'Wait until the installed engine is reported' },
    ]
  },
  steps: {
    ...(switchoverCluster.steps as Record<SwitchoverStep, StepBody>),
    compare: {
      deadlineMs: 30_000,
      async run(context) {
        const cluster = await context.readCluster()
        const why = whyOtherwise(context, cluster)
        if (why && mayLookAgain(context) && !context.cancelAskedAt) return wait(100, why.message)
        if (why) return fail(why)
        const seen =
          cluster.members.find((m) => m.name === context.input.primary)?.replication?.standbys ?? []
        return next({
          following: cluster.members
            .filter((m) => seen.some((s) => s.applicationName === m.name && s.state === 'streaming'))
            .map((m) => m.instanceId),
        })
      },
    },
    standbys: moveStep(standbysIn),
    'observe-standbys': observeFollowing((context, cluster) =>
      standbysIn(context.input).map((name) => named(cluster, name).instanceId),
    ),
    former: moveStep(({ primary }) => [primary]),
    'observe-former': observeFollowing((context, cluster) => [
      named(cluster, context.input.primary).instanceId,
    ]),
    primary: moveStep(({ primary }) => [primary]),
    'observe-primary': observeFollowing((context) => followersBefore(context)),
    seen: {
      deadlineMs: SEEN_PATIENCE_MS + 30_000,
      async run(context) {
        const { build, members } = context.input
        const cluster = await context.readCluster()
        const unseen = members.filter((name) => {
          const { engine } = named(cluster, name)
          return engine?.running !== build
        })
        const waited = context.now.getTime() - context.step.startedAt.getTime()
        const names = unseen.map((name) => `"${name}"`).join(', ')
        if (unseen.length > 0 && !context.cancelAskedAt && waited <= SEEN_PATIENCE_MS)
          return wait(50, `waiting until ${names} is reported on build ${build}`)
        return next(
          { moved: members, ...(unseen.length > 0 ? { notSeen: unseen } : {}) },
          unseen.length > 0 ? { log: [{ text: `not reported on build ${build} yet: ${names}` }] } : {},
        )
      },
    },
  },
  undo: (
    context,
    cluster,
    why, // its steps have the same names and ask the same of the input
  ) => switchoverCluster.undo?.(context as unknown as StepContext<'switchover-cluster'>, cluster, why) ?? [],
})

type SwitchoverStep = ReturnType<(typeof switchoverCluster)['plan']>[number]['name']
