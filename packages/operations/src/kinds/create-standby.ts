import type { TaskResult, Upstream } from '@floe/agent-contract'
import { insertStandby, readCluster, reviveStandby } from '@floe/db'
import { type ClusterObserved, fault } from '@floe/domain'
import { chooseHost } from '../choose-host'
import { admit, controlOf, dismiss, memberOf, primaryMember, withReplicationRole } from '../instance-control'
import { observeFollowing } from '../observe-following'
import { pageRepairStep } from '../page-repair'
import { defineOperation, type StepContext } from '../step'
import { taskStep } from '../task-step'

const own = (context: { input: { instanceId: string } }, cluster: Parameters<typeof memberOf>[0]) =>
  memberOf(cluster, context.input.instanceId)

const prepared = ({ input, results }: StepContext<'create-standby'>, cluster: ClusterObserved) =>
  withReplicationRole(cluster, input.instanceId, results.prepare)

/**
 * Copies the primary to a new standby that then follows it. The new one's host makes a password that stays there; the
 * primary gets a verifier of it. Until the copy is whole, a failure or a cancel takes everything back, its row too.
 */
export const createStandby = defineOperation('create-standby', {
  claim: async ({ tx, input, retryOf, hostId, instance }) => {
    // the row of one that was taken back is made anew
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
    admit: taskStep('admit-standby', {
      deadlineMs: 60_000,
      on: (_context, cluster) => primaryMember(cluster),
      task: (context, observed) => {
        const cluster = prepared(context, observed)
        return admit(cluster, primaryMember(cluster), own(context, cluster), {
          verifier: (context.results.prepare as TaskResult<'prepare-standby'>).replicationVerifier,
          slot: true,
        })
      },
    }),
    clone: taskStep('clone-standby', {
      deadlineMs: 24 * 3_600_000,
      task: ({ input, results }) => ({
        kind: 'clone-standby',
        instanceId: input.instanceId,
        upstream: results.admit?.upstream as Upstream,
        replace: false,
      }),
    }),
    follow: taskStep('follow-upstream', {
      deadlineMs: 600_000,
      on: own,
      task: ({ input, results }, cluster) =>
        controlOf(cluster).follow(input.instanceId, results.admit?.upstream as Upstream),
      records: (_result, { input }) => [
        { kind: 'member-role', instanceId: input.instanceId, memberRole: 'standby' },
      ],
    }),
    observe: observeFollowing(({ input }) => [input.instanceId]),
    repair: pageRepairStep({ known: prepared }),
  },
  undo: (context, observed) => {
    const cluster = prepared(context, observed)
    // a whole copy is worth keeping: it can be started again, or removed
    if (context.results.clone?.method !== undefined) return []
    const standby = own(context, cluster)
    const primary = primaryMember(cluster)
    return [
      {
        id: 'forget',
        after: 'prepare',
        hostId: standby.hostId,
        hostName: standby.hostName,
        task: { kind: 'forget-standby', instanceId: context.input.instanceId },
      },
      {
        id: 'dismiss',
        after: 'admit',
        hostId: primary.hostId,
        hostName: primary.hostName,
        task: dismiss(cluster, primary, standby, false),
      },
    ]
  },
  // nothing of it is left anywhere: its name is free again, and a retry makes its row anew
  undone: ({ results }, ended) =>
    results.clone?.method !== undefined || ended.forget?.forgotten === false
      ? []
      : [{ kind: 'instance-deleted' }],
})
