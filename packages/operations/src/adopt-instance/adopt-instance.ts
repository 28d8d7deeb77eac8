import { type ClusterMember, type ClusterObserved, primaryToTell } from '@floe/domain'
import { controlOf, memberOf } from '../instance-control'
import { defineOperation, next, type StepContext, wait } from '../step'
import { taskStep } from '../task-step'

type Context = StepContext<'adopt-instance'>

const own = (context: Context, cluster: ClusterObserved): ClusterMember =>
  memberOf(cluster, context.input.instanceId)

/**
 * Has the agent know an instance again that it has lost, as it is recorded, and takes over its engine where that runs.
 * Nothing is started; what is recorded as fenced is fenced again, and a member of a cluster that fails over by itself is
 * held back from the moment on that it is registered. Of an instance that only the console did not know, the row is made
 * when it is ordered, with a cluster of its own.
 */
export const adoptInstance = defineOperation('adopt-instance', {
  plan: ({ reported }) => [
    {
      name: 'adopt',
      title: reported
        ? 'Have its agent name it as the console does'
        : 'Prove that the directory is the instance’s, and register it',
    },
    { name: 'fence', title: 'Keep it from accepting writes where it is fenced' },
    { name: 'observe', title: 'See it reported' },
  ],
  steps: {
    adopt: taskStep('adopt-instance', {
      deadlineMs: 60_000,
      on: () => null,
      task: (context, cluster) =>
        controlOf(cluster).adopt(own(context, cluster), cluster, context.input.reported),
    }),
    fence: taskStep('fence-instance', {
      deadlineMs: 120_000,
      on: () => null,
      skip: (context, cluster) => (own(context, cluster).memberRole === 'fenced' ? null : { skipped: true }),
      task: (context, cluster) =>
        controlOf(cluster).fence(
          context.input.instanceId,
          'its cluster has another primary',
          // on a newer one it was promoted since, which is for a person to look into
          primaryToTell(cluster)?.timeline ?? null,
        ),
    }),
    observe: {
      deadlineMs: 30_000,
      async run(context) {
        const seen = await context.readObservation()
        if (context.cancelAskedAt || (seen.observedAt !== null && seen.state !== 'unknown')) return next()
        return wait(50, 'waiting until its agent reports it')
      },
    },
  },
})
