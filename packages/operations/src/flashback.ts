import { type ClusterMember, type ClusterObserved, fault, type InstanceId } from '@floe/domain'
import { memberOf } from './instance-control'
import type { Guarded } from './step'

/** A large table takes hours. */
const DEADLINE_MS = 24 * 3_600_000
/** A host that is silent for longer is not waited for: an open operation would keep the cluster from a failover. */
const SILENT_MS = 20_000

/** What the steps of all flashbacks have in common: the member that was named does it, whichever member is the primary by then. */
export const onItsMember = {
  deadlineMs: DEADLINE_MS,
  on: ({ input }: { input: { instanceId: InstanceId } }, cluster: ClusterObserved) =>
    memberOf(cluster, input.instanceId),
  silence: {
    afterMs: SILENT_MS,
    fault: ({ name, hostName }: ClusterMember) => ({
      code: 'agent.unreachable',
      message: `host "${hostName}" of instance "${name}" does not answer`,
      detail: 'The flashback may still be running there.',
      hint: 'Retry once the host answers: what was done by then is not done a second time.',
    }),
  },
}

/** Of a merge that would do nothing, or whose selected rows nobody can know. */
export function refuseMerge({ input }: Pick<Guarded<'merge-flashback'>, 'input'>): void {
  if (!input.insertMissing && !input.restoreChanged && !input.deleteAdded)
    throw fault('flashback.nothing_to_merge', 'a merge has to insert, restore or delete rows', {
      hint: 'Choose at least one of the three.',
    })
  if ((input.comparison === undefined) !== (input.selected === undefined))
    throw fault('flashback.selection', 'selected rows are those of a comparison', {
      detail: 'Either both are given, or neither.',
    })
  if (input.selected !== undefined && input.condition !== undefined)
    throw fault('flashback.selection', 'rows are either selected or those that match a condition', {
      hint: 'Give one of the two.',
    })
}
