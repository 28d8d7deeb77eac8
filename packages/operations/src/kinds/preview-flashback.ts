import { onItsMember } from '../flashback'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Reads only, and on any member: a look does not have to load the primary. */
export const previewFlashback = defineOperation('preview-flashback', {
  plan: ({ tableName, at }) => [{ name: 'compare', title: `Compare ${tableName} of ${at} with now` }],
  steps: {
    compare: taskStep('preview-flashback', {
      ...onItsMember,
      task: ({ input }) => ({
        kind: 'preview-flashback',
        instanceId: input.instanceId,
        database: input.database,
        table: input.table,
        at: input.at,
      }),
    }),
  },
})
