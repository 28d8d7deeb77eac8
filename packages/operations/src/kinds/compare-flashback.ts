import { onItsMember } from '../flashback'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Reads only, and on any member. */
export const compareFlashback = defineOperation('compare-flashback', {
  plan: ({ resultName, tableName }) => [
    { name: 'compare', title: `Compare ${resultName} with ${tableName}` },
  ],
  steps: {
    compare: taskStep('compare-flashback', {
      ...onItsMember,
      task: ({ input }) => ({
        kind: 'compare-flashback',
        instanceId: input.instanceId,
        database: input.database,
        result: input.result,
        resultName: input.resultName,
        tableName: input.tableName,
      }),
    }),
  },
})
