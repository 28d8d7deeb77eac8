import { onItsMember } from '../flashback'
import { refuseStandby } from '../guards'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** One transaction; a retry after one that was carried out without an answer finds that out. */
export const swapFlashback = defineOperation('swap-flashback', {
  guard: refuseStandby,
  plan: ({ resultName, tableName }) => [
    { name: 'swap', title: `Swap the rows of ${tableName} and ${resultName}` },
  ],
  steps: {
    swap: taskStep('swap-flashback', {
      ...onItsMember,
      task: ({ input }) => ({
        kind: 'swap-flashback',
        instanceId: input.instanceId,
        database: input.database,
        result: input.result,
        resultName: input.resultName,
        tableName: input.tableName,
      }),
    }),
  },
})
