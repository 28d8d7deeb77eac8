import { fault } from '@floe/domain'
import { refuseLeaving } from '../guards'
import { dismiss, memberOf, primaryMember } from '../instance-control'
import { leaveSynchronousSet } from '../leave-synchronous-set'
import { pageRepairStep } from '../page-repair'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/**
 * Takes a standby away: first out of the synchronous set, so that no commit waits for it, then its engine and files, then
 * its slot and role on the primary. Where its host is out of reach and a person typed its name, what lies there is left: the
 * log says where, and the controller fences it should it show up again.
 */
export const removeStandby = defineOperation('remove-standby', {
  guard: async (asked) => {
    await refuseLeaving(asked)
    const { instance, input } = asked
    if (input.unreachableHost !== null && input.unreachableHost !== instance.host.name)
      throw fault('host.name_mismatch', `"${input.unreachableHost}" is not the name of the standby’s host`, {
        hint: `Type "${instance.host.name}" to remove the standby without its host.`,
      })
  },
  plan: (input) => [
    { name: 'synchronous', title: 'Remove it from the synchronous standbys' },
    { name: 'repair', title: 'Remove it from the page repair sources' },
    { name: 'delete', title: input.keepFiles ? 'Stop it, keep its files' : 'Stop it and remove its files' },
    { name: 'dismiss', title: 'Drop its slot and role on the primary' },
  ],
  steps: {
    synchronous: leaveSynchronousSet(),
    repair: pageRepairStep({ without: ({ input }) => input.instanceId }),
    delete: taskStep('delete-instance', {
      deadlineMs: 300_000,
      task: ({ input }) => ({
        kind: 'delete-instance',
        instanceId: input.instanceId,
        confirmName: input.confirmName,
        keepFiles: input.keepFiles,
      }),
      recoverFrom: (fault) =>
        fault.code === 'instance.not_found' ? { removed: false, keptDirectory: null } : undefined,
      withoutHost: async ({ input, hostName, readObservation }) => {
        if (input.unreachableHost !== hostName) return null
        const { directory } = await readObservation()
        const left = { host: hostName, directory }
        const where = directory === null ? 'whatever exists of it' : `directory "${directory}"`
        return {
          result: { removed: false, keptDirectory: null, left },
          log: `removed without host "${hostName}": ${where} is left there, with its engine if that still runs`,
        }
      },
    }),
    dismiss: taskStep('dismiss-standby', {
      deadlineMs: 60_000,
      on: (_context, cluster) => primaryMember(cluster),
      task: ({ input }, cluster) =>
        dismiss(cluster, primaryMember(cluster), memberOf(cluster, input.instanceId), false),
      records: (_result, { results }) => [
        { kind: results.delete?.left ? 'instance-left' : 'instance-deleted' },
      ],
    }),
  },
})
