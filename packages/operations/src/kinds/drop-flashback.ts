import { onItsMember } from '../flashback'
import { refuseStandby } from '../guards'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Drops what a flashback made, and nothing else. */
export const dropFlashback = defineOperation('drop-flashback', {
  guard: refuseStandby,
  plan: ({ resultName }) => [{ name: 'drop', title: `Drop ${resultName}` }],
  steps: {
    drop: taskStep('drop-flashback', {
      ...onItsMember,
      task: ({ input }) => ({
        kind: 'drop-flashback',
        instanceId: input.instanceId,
        database: input.database,
        result: input.result,
        resultName: input.resultName,
      }),
    }),
  },
})
