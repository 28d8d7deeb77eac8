import { commitsWait } from '@floe/domain'
import { controlOf, memberOf, namesFor, primaryMember } from '../instance-control'
import { defineOperation, next, wait } from '../step'
import { taskStep } from '../task-step'
import { tasksStep } from '../tasks-step'

/** Commits may wait this long for a standby that is on its way before the operation ends and the console says so. */
const CONNECT_PATIENCE_MS = 15_000

/**
 * Which standbys a commit waits for, and until when. The level goes to every member that runs, so that it holds after a
 * switchover too; the names to the primary alone.
 */
export const changeSynchronous = defineOperation('change-synchronous', {
  plan: () => [
    { name: 'level', title: 'Set synchronous_commit on every member' },
    { name: 'standbys', title: 'Set the synchronous standbys on the primary' },
    { name: 'observe', title: 'See the standbys confirm' },
  ],
  steps: {
    level: tasksStep({
      deadlineMs: 120_000,
      tasks: ({ input }, cluster) =>
        cluster.members
          .filter((m) => m.memberRole !== 'fenced')
          .map((m) => ({
            id: m.name,
            hostId: m.hostId,
            hostName: m.hostName,
            task: controlOf(cluster).changeSettings(m.instanceId, [
              { name: 'synchronous_commit', value: input.commitMode },
            ]),
          })),
      // the primary's counts; a standby that is away takes it from the next copy or change
      tolerate: (task, fault) => fault.code === 'agent.unreachable' && !task.task.kind.startsWith('set-'),
    }),
    standbys: taskStep('set-synchronous', {
      deadlineMs: 60_000,
      on: (_context, cluster) => primaryMember(cluster),
      task: ({ input }, cluster) =>
        controlOf(cluster).setSynchronous(
          cluster.primaryInstanceId,
          namesFor(cluster, cluster.primaryInstanceId, undefined, input.synchronous),
        ),
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
        if (context.cancelAskedAt || waited > CONNECT_PATIENCE_MS)
          return next(
            { waiting: lacking !== null },
            {
              log: [
                {
                  text: lacking
                    ? `commits wait: ${lacking.connected} of ${lacking.asked} synchronous standbys are connected`
                    : 'not seen in force yet',
                },
              ],
            },
          )
        return wait(
          50,
          lacking ? 'waiting for the synchronous standbys' : 'waiting until it is seen in force',
        )
      },
    },
  },
})
