import type { TaskResult, Upstream } from '@floe/agent-contract'
import type { ClusterMember, ClusterObserved } from '@floe/domain'
import { admit, controlOf, dismiss, memberOf, primaryMember, withReplicationRole } from './instance-control'
import type { StepBody, StepContext, StepRecord, UndoTask } from './step'
import { taskStep } from './task-step'

// What the creation and the rejoin of a standby have in common: its host prepares a role, the primary admits the role and
// makes a slot, and the standby follows the primary by both.

type Admitting = 'create-standby' | 'rejoin-standby'

/** The member that the operation is about. */
export const ownMember = ({ input }: { input: { instanceId: string } }, cluster: ClusterObserved) =>
  memberOf(cluster, input.instanceId)

/** The cluster with the role that the step `prepare` answered, which reports include later. */
export const withPreparedRole = (
  { input, results }: Pick<StepContext<Admitting>, 'input' | 'results'>,
  cluster: ClusterObserved,
) => withReplicationRole(cluster, input.instanceId, results.prepare)

/** Where the standby gets its WAL, as the step `admit` answered. */
export const admittedUpstream = ({ results }: Pick<StepContext, 'results'>) =>
  results.admit?.upstream as Upstream

/** Creates the standby's role and slot on the primary. */
export const admitStep: StepBody<Admitting> = taskStep('admit-standby', {
  deadlineMs: 60_000,
  on: (_context, cluster) => primaryMember(cluster),
  task: (context, observed) => {
    const cluster = withPreparedRole(context, observed)
    return admit(cluster, primaryMember(cluster), ownMember(context, cluster), {
      verifier: (context.results.prepare as TaskResult<'prepare-standby'>).replicationVerifier,
      slot: true,
    })
  },
})

/** Starts the member as a standby of the primary. `alsoRecords` adds to what that is recorded as. */
export const followStep = (
  alsoRecords: (context: StepContext<Admitting>, cluster: ClusterObserved) => StepRecord[] = () => [],
): StepBody<Admitting> =>
  taskStep('follow-upstream', {
    deadlineMs: 600_000,
    on: ownMember,
    task: (context, cluster) =>
      controlOf(cluster).follow(context.input.instanceId, admittedUpstream(context)),
    records: (_result, context, cluster) => [
      { kind: 'member-role', instanceId: context.input.instanceId, memberRole: 'standby' },
      ...alsoRecords(context, cluster),
    ],
  })

/** Undoes `admit`: a slot that no standby uses would retain WAL until the primary's disk is full. */
export function dismissal(cluster: ClusterObserved, standby: ClusterMember, keepRole: boolean): UndoTask {
  const primary = primaryMember(cluster)
  return {
    id: 'dismiss',
    after: 'admit',
    hostId: primary.hostId,
    hostName: primary.hostName,
    task: dismiss(cluster, primary, standby, keepRole),
  }
}
