import { withoutMember } from '@floe/domain'
import { controlOf, dismiss, memberOf, primaryMember, standbysNamed, whyNotNamed } from '../instance-control'
import { pageRepairStep } from '../page-repair'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/**
 * Takes a standby away: first out of the synchronous set, so that no commit waits for it, then its engine and files, then
 * its slot and role on the primary. Where its host is out of reach and a person typed its name, what lies there is left: the
 * log says where, and the controller fences it should it show up again.
 */
export const removeStandby = defineOperation('remove-standby', {
  plan: (input) => [
    { name: 'synchronous', title: 'Let no commit wait for it' },
    { name: 'repair', title: 'Take no torn pages from it' },
    { name: 'delete', title: input.keepFiles ? 'Stop it, keep its files' : 'Stop it and remove its files' },
    { name: 'dismiss', title: 'Drop its slot and role on the primary' },
  ],
  steps: {
    synchronous: taskStep('set-synchronous', {
      deadlineMs: 60_000,
      on: (_context, cluster) => primaryMember(cluster),
      skip: ({ input }, cluster) =>
        cluster.synchronous?.instanceIds.includes(input.instanceId) ? null : { standbyNames: 'unchanged' },
      task: ({ input }, cluster) =>
        controlOf(cluster).setSynchronous(
          cluster.primaryInstanceId,
          standbysNamed(cluster, cluster.primaryInstanceId, whyNotNamed(cluster), {
            sync: withoutMember(cluster.synchronous, input.instanceId),
            asMany: true,
          }).names,
        ),
      records: (_result, { input }, cluster) => [
        {
          kind: 'cluster-synchronous',
          clusterId: cluster.clusterId,
          synchronous: withoutMember(cluster.synchronous, input.instanceId),
        },
      ],
    }),
    repair: pageRepairStep({ without: ({ input }) => input.instanceId }),
    delete: taskStep('delete-instance', {
      deadlineMs: 300_000,
      task: ({ input }) => ({
        kind: 'delete-instance',
        instanceId: input.instanceId,
        confirmName: input.confirmName,
        keepFiles: input.keepFiles,
      }),
      forgive: (fault) =>
        fault.code === 'instance.not_found' ? { removed: false, keptDirectory: null } : undefined,
      withoutHost: async ({ input, hostName, readObservation }) => {
        if (input.unreachableHost !== hostName) return null
        const { directory } = await readObservation()
        const left = { host: hostName, directory }
        const where = directory === null ? 'what there is of it' : `directory "${directory}"`
        return {
          result: { removed: false, keptDirectory: null, left },
          log: `removed without host "${hostName}": ${where} is left there, and its engine where it still runs`,
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
