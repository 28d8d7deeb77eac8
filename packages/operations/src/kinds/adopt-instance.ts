import { type InstanceView, insertInstance } from '@floe/db'
import { type ClusterMember, type ClusterObserved, fault, primaryToTell } from '@floe/domain'
import { chooseHost } from '../choose-host'
import { controlOf, memberOf } from '../instance-control'
import { defineOperation, next, type StepContext, wait } from '../step'
import { taskStep } from '../task-step'

type Context = StepContext<'adopt-instance'>

const own = (context: Context, cluster: ClusterObserved): ClusterMember =>
  memberOf(cluster, context.input.instanceId)

/** Why an instance that an agent reports is not made known to the console: it is, or was. */
export const adoptedBefore = ({ name, host, deletedAt }: InstanceView) =>
  deletedAt
    ? fault('instance.was_deleted', `instance "${name}" was deleted from this console`, {
        detail: `That was at ${deletedAt.toISOString()}, on host "${host.name}"; its files were kept or could not be removed.`,
        hint: 'It cannot be adopted again. Check whether it holds anything you need, then remove its directory by hand.',
      })
    : fault('instance.exists', `instance "${name}" is known to this console`, {
        detail: `It belongs to host "${host.name}".`,
        hint: `If its agent has lost it, run "./floe instance adopt ${name}".`,
      })

/**
 * Has the agent know an instance again that it has lost, as it is recorded, and takes over its engine where that runs.
 * Nothing is started; what is recorded as fenced is fenced again, and a member of a cluster that fails over automatically is
 * held back from the moment on that it is registered. Of an instance that only the console did not know, the row is made
 * when it is ordered, with a cluster of its own.
 */
export const adoptInstance = defineOperation('adopt-instance', {
  claim: async ({ tx, input, retryOf, hostId, instance }) => {
    if (!input.reported || retryOf !== null) return false
    if (instance) throw adoptedBefore(instance)
    const { name, intent } = input.reported
    await insertInstance(tx, {
      instanceId: input.instanceId,
      name,
      hostId: await chooseHost(tx, hostId),
      intent,
    })
    return true
  },
  plan: ({ reported }) => [
    {
      name: 'adopt',
      title: reported
        ? 'Give it the console’s name at its agent'
        : 'Verify that the directory is the instance’s, and register it',
    },
    { name: 'fence', title: 'Keep it from accepting writes if it is fenced' },
    { name: 'observe', title: 'Wait until it is reported' },
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
        return wait(50, 'waiting for a report of its agent')
      },
    },
  },
})
