import { onItsMember, refuseMerge } from '../flashback'
import { refuseStandby } from '../guards'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** One transaction on the primary, or the count of what it would do. */
export const mergeFlashback = defineOperation('merge-flashback', {
  guard(asked) {
    refuseMerge(asked)
    return refuseStandby(asked)
  },
  plan: ({ resultName, tableName, dryRun }) => [
    {
      name: 'merge',
      title: dryRun
        ? `Count the rows of ${resultName} that a merge applies to ${tableName}`
        : `Put rows of ${resultName} back into ${tableName}`,
    },
  ],
  steps: {
    merge: taskStep('merge-flashback', {
      ...onItsMember,
      task: ({ input }) => ({
        kind: 'merge-flashback',
        instanceId: input.instanceId,
        database: input.database,
        result: input.result,
        resultName: input.resultName,
        tableName: input.tableName,
        insertMissing: input.insertMissing,
        restoreChanged: input.restoreChanged,
        deleteAdded: input.deleteAdded,
        selection:
          input.comparison !== undefined && input.selected !== undefined
            ? { comparison: input.comparison, selected: input.selected }
            : input.condition !== undefined
              ? { kind: 'matching', condition: input.condition }
              : null,
        expected: input.expected ?? null,
        dryRun: input.dryRun,
      }),
    }),
  },
})
