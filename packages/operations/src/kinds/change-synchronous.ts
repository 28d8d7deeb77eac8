import { isDeepStrictEqual } from 'node:util'
import {
  automaticBlockers,
  type ClusterObserved,
  commitsWait,
  type Fault,
  fault,
  type OperationInput,
  waitsForStandbys,
} from '@floe/domain'
import {
  controlOf,
  leftOutLines,
  memberOf,
  primaryMember,
  standbysNamed,
  whyNotNamed,
} from '../instance-control'
import { mayLookAgain } from '../look-again'
import { defineOperation, fail, next, type StepBody, wait } from '../step'
import { taskStep } from '../task-step'
import { tasksStep } from '../tasks-step'

/** A standby that was started just now has this long to follow. */
const FOLLOW_PATIENCE_MS = 5_000

/** The standbys that commits are to wait for, without those that would never confirm one. */
export const followingOf = (
  cluster: ClusterObserved,
  { synchronous }: Pick<OperationInput<'change-synchronous'>, 'synchronous'>,
) =>
  standbysNamed(cluster, cluster.primaryInstanceId, whyNotNamed(cluster), {
    sync: synchronous,
    asMany: true,
  })

/** Why a set cannot be set: too few of its standbys follow, and commits would wait from the first one on. */
export function tooFewFollow(
  cluster: ClusterObserved,
  { synchronous, commitMode }: Pick<OperationInput<'change-synchronous'>, 'synchronous' | 'commitMode'>,
): Fault | null {
  if (!synchronous || !waitsForStandbys(commitMode)) return null
  // who lets commits wait for less, or otherwise, must not be kept from it by those that they wait for now
  if (isDeepStrictEqual(synchronous, cluster.synchronous)) return null
  const whys = synchronous.instanceIds.map((id) => whyNotNamed(cluster)(memberOf(cluster, id)))
  const missing = whys.filter((why) => why !== null)
  const following = whys.length - missing.length
  if (following >= synchronous.count) return null
  return {
    code: 'cluster.too_few_standbys',
    message: `commits would wait for ${synchronous.count} of ${following} standbys that follow the primary`,
    detail: `These do not follow it: ${missing.join('; ')}.`,
    hint: 'Bring them back first, or name fewer standbys.',
  }
}

/** Why a cluster that fails over automatically could not do so safely any more. */
function noMoreAutomatic(
  cluster: ClusterObserved,
  wanted: Pick<OperationInput<'change-synchronous'>, 'synchronous' | 'commitMode'>,
): Fault | null {
  const [blocker] = cluster.automatic ? automaticBlockers(cluster, wanted) : []
  if (!blocker || automaticBlockers(cluster).some((b) => b.code === blocker.code)) return null
  return {
    code: 'cluster.automatic',
    message: `the cluster could not fail over automatically and safely: ${blocker.message}`,
    hint: `Turn automatic failover off first: "./floe cluster automatic ${cluster.name} off".`,
  }
}

const levelOnMembers = tasksStep<'change-synchronous'>({
  deadlineMs: 120_000,
  tasks: ({ input }, cluster) =>
    cluster.members
      .filter((m) => m.memberRole !== 'fenced')
      .flatMap(({ instanceId, name, hostId, hostName }) => {
        const at = { hostId, hostName }
        const level = controlOf(cluster).changeSettings(instanceId, [
          { name: 'synchronous_commit', value: input.commitMode },
        ])
        const { automatic } = cluster
        const floor =
          automatic &&
          controlOf(cluster).setCommitFloor(instanceId, {
            commitMode: input.commitMode,
            receiverTimeoutMs: automatic.afterMs,
          })
        return [
          { id: name, ...at, task: level },
          ...(floor ? [{ id: `floor.${name}`, ...at, task: floor }] : []),
        ]
      }),
  // the primary's counts; a standby that is away takes it from the next copy or change
  optional: (task, fault) => fault.code === 'agent.unreachable' && !task.task.kind.startsWith('set-'),
})

/** A level that waits for no standby is in force on some member before it is recorded as the cluster's. */
const levelStep: StepBody<'change-synchronous'> = {
  ...levelOnMembers,
  async run(context) {
    if (!waitsForStandbys(context.input.commitMode)) {
      const { clusterId } = await context.readCluster()
      await context.record([{ kind: 'synchronous-rule', clusterId, rule: null }])
    }
    return levelOnMembers.run(context)
  },
}

/**
 * Which standbys a commit waits for, and until when. The level goes to every member that runs, so that it holds after a
 * switchover too; the names to the primary alone.
 */
export const changeSynchronous = defineOperation('change-synchronous', {
  guard: async ({ input: { synchronous }, readCluster }) => {
    const cluster = await readCluster()
    const known = new Set<string>(cluster?.members.map((m) => m.instanceId))
    for (const id of synchronous?.instanceIds ?? [])
      if (!known.has(id) || id === cluster?.primaryInstanceId)
        throw fault('cluster.no_standby', `instance ${id} is not a standby of this cluster`, {
          hint: 'Name its standbys.',
        })
    if (synchronous && synchronous.count > synchronous.instanceIds.length)
      throw fault(
        'cluster.too_few_standbys',
        `commits would wait for ${synchronous.count} of ${synchronous.instanceIds.length} standbys`,
        { hint: 'Wait for at most as many standbys as are named.' },
      )
  },
  plan: () => [
    { name: 'check', title: 'Check that the standbys follow the primary' },
    { name: 'level', title: 'Set synchronous_commit on every member' },
    { name: 'standbys', title: 'Set the synchronous standbys on the primary' },
    { name: 'observe', title: 'Wait until the standbys confirm' },
  ],
  steps: {
    check: {
      deadlineMs: 30_000,
      async run(context) {
        const cluster = await context.readCluster()
        const refusal = noMoreAutomatic(cluster, context.input) ?? tooFewFollow(cluster, context.input)
        const { leftOut } = followingOf(cluster, context.input)
        const waited = context.now.getTime() - context.step.startedAt.getTime()
        if ((refusal || leftOut.length > 0) && (mayLookAgain(context) || waited < FOLLOW_PATIENCE_MS))
          return wait(100, 'waiting until the standbys follow')
        return refusal ? fail(refusal) : next({ leftOut }, { log: leftOutLines(leftOut) })
      },
    },
    level: levelStep,
    standbys: taskStep('set-synchronous', {
      deadlineMs: 60_000,
      on: (_context, cluster) => primaryMember(cluster),
      task: ({ input }, cluster) =>
        controlOf(cluster).setSynchronous(cluster.primaryInstanceId, followingOf(cluster, input).names),
      records: (_result, { input }, cluster) => [
        {
          kind: 'cluster-synchronous',
          clusterId: cluster.clusterId,
          synchronous: input.synchronous,
          commitMode: input.commitMode,
        },
      ],
    }),
    observe: {
      deadlineMs: 60_000,
      async run(context) {
        const cluster = await context.readCluster()
        const shown = memberOf(cluster, cluster.primaryInstanceId).replication
        const wanted = context.results.standbys?.standbyNames
        const lacking = commitsWait(cluster)
        const inForce =
          shown?.synchronousStandbyNames === wanted && shown?.synchronousCommit === context.input.commitMode
        if (inForce && !lacking) return next()
        const waited = context.now.getTime() - context.step.startedAt.getTime()
        if (context.cancelAskedAt || waited > context.patience.connectMs)
          return next(
            { waiting: lacking !== null },
            {
              log: [
                {
                  text: lacking
                    ? `commits wait: ${lacking.connected} of ${lacking.asked} synchronous standbys are connected`
                    : 'not reported to be in force yet',
                },
              ],
            },
          )
        return wait(
          50,
          lacking ? 'waiting for the synchronous standbys' : 'waiting until it is reported to be in force',
        )
      },
    },
  },
})
