import { readDeletionProtected } from '@floe/db'
import { fault } from '@floe/domain'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/**
 * Stops the engine and removes its directory (or keeps it under another name). An instance its agent does not know, e.g.
 * because its creation failed, is gone already. One whose creation failed while its host went away is removed without
 * the host: no engine of it was ever seen to start. Should it show up, it is fenced.
 */
export const deleteInstance = defineOperation('delete-instance', {
  guard: async ({ tx, instance: { name, cluster } }) => {
    if (cluster.memberRole !== 'primary')
      throw fault('instance.is_standby', `instance "${name}" is a standby`, {
        hint: 'Remove the standby instead.',
      })
    if (cluster.members > 1)
      throw fault(
        'instance.has_standbys',
        `instance "${name}" is the primary of ${cluster.members - 1} other members`,
        {
          hint: 'Remove its standbys first, or switch over.',
        },
      )
    // read again: it holds until the deletion is ordered
    if (await readDeletionProtected(tx, cluster.clusterId))
      throw fault('cluster.deletion_protected', `instance "${name}" has deletion protection`, {
        hint: 'Turn it off in the danger zone of the instance, or by "./floe instance deletion-protection".',
      })
  },
  plan: (input) => [
    { name: 'delete', title: input.keepFiles ? 'Stop the engine, keep its files' : 'Remove the instance' },
  ],
  steps: {
    delete: taskStep('delete-instance', {
      deadlineMs: 300_000,
      task: ({ input }) => ({
        kind: 'delete-instance',
        instanceId: input.instanceId,
        confirmName: input.confirmName,
        keepFiles: input.keepFiles,
      }),
      records: () => [{ kind: 'instance-deleted' }],
      recoverFrom: (fault) =>
        fault.code === 'instance.not_found' ? { removed: false, keptDirectory: null } : undefined,
      withoutHost: async ({ hostName, readObservation }) => {
        const { observedAt, state, directory } = await readObservation()
        if (observedAt !== null && state !== 'creating') return null
        return {
          result: { removed: false, keptDirectory: null, left: { host: hostName, directory } },
          log: `removed without host "${hostName}": what its creation left there was not deleted`,
          records: [{ kind: 'instance-left' }],
        }
      },
    }),
  },
})
