import { onItsMember } from '../flashback'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Reads only, and on any member; the rows go from the agent to the browser and are stored nowhere. */
export const exportFlashback = defineOperation('export-flashback', {
  plan: ({ resultName }) => [{ name: 'open', title: `Open the download of ${resultName}` }],
  steps: {
    open: taskStep('export-flashback', {
      ...onItsMember,
      task: ({ input }) => ({
        kind: 'export-flashback',
        instanceId: input.instanceId,
        database: input.database,
        result: input.result,
        resultName: input.resultName,
      }),
    }),
  },
})
