import { insertStandby, readCluster, reviveStandby } from '@floe/db'
import { fault } from '@floe/domain'
import {
  admitStep,
  admittedUpstream,
  dismissal,
  followStep,
  ownMember,
  withPreparedRole,
} from '../admit-standby'
import { chooseHost } from '../choose-host'
import { observeFollowing } from '../observe-following'
import { pageRepairStep } from '../page-repair'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/**
 * Copies the primary to a new standby that then follows it. The host of the standby makes a password that stays there; the
 * primary gets a verifier of it. Until the copy is complete, a failure or a cancel undoes everything, its row too.
 */
export const createStandby = defineOperation('create-standby', {
  claim: async ({ tx, input, retryOf, hostId, instance }) => {
    // the row of an undone creation is inserted again
    if (retryOf !== null && !instance?.deletedAt) return false
    if (!(await readCluster(tx, input.clusterId)))
      throw fault('cluster.not_found', `cluster "${input.clusterId}" does not exist`)
    const on = await chooseHost(tx, retryOf === null ? hostId : instance?.host.hostId)
    if (retryOf === null) await insertStandby(tx, { ...input, hostId: on })
    else await reviveStandby(tx, input.instanceId)
    return true
  },
  retryAfresh: true,
  plan: () => [
    { name: 'prepare', title: 'Prepare its host' },
    { name: 'admit', title: 'Admit it on the primary' },
    { name: 'clone', title: 'Copy the primary' },
    { name: 'follow', title: 'Start it as a standby' },
    { name: 'observe', title: 'Wait until it follows' },
    { name: 'repair', title: 'Let members fetch torn pages from each other' },
  ],
  steps: {
    prepare: taskStep('prepare-standby', {
      deadlineMs: 60_000,
      task: ({ input }) => ({
        kind: 'prepare-standby',
        instanceId: input.instanceId,
        name: input.name,
      }),
    }),
    admit: admitStep,
    clone: taskStep('clone-standby', {
      deadlineMs: 24 * 3_600_000,
      task: (context) => ({
        kind: 'clone-standby',
        instanceId: context.input.instanceId,
        upstream: admittedUpstream(context),
        replace: false,
      }),
    }),
    follow: followStep(),
    observe: observeFollowing(({ input }) => [input.instanceId]),
    repair: pageRepairStep({ known: withPreparedRole }),
  },
  undo: (context, observed) => {
    const cluster = withPreparedRole(context, observed)
    // a complete copy is worth keeping: it can be started again, or removed
    if (context.results.clone?.method !== undefined) return []
    const standby = ownMember(context, cluster)
    return [
      {
        id: 'forget',
        after: 'prepare',
        hostId: standby.hostId,
        hostName: standby.hostName,
        task: { kind: 'forget-standby', instanceId: context.input.instanceId },
      },
      dismissal(cluster, standby, false),
    ]
  },
  // no trace is left: the name is free again, and a retry inserts the row again
  undone: ({ results }, ended) =>
    results.clone?.method !== undefined || ended.forget?.forgotten === false
      ? []
      : [{ kind: 'instance-deleted' }],
})
