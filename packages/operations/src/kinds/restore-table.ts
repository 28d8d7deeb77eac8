import { onItsMember } from '../flashback'
import { refuseStandby } from '../guards'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** One task: what it restores lives no longer than it, so nothing has to be undone. */
export const restoreTable = defineOperation('restore-table', {
  guard: refuseStandby,
  plan: ({ tableName, at }) => [
    { name: 'restore', title: `Restore a backup beside the instance, and copy ${tableName} as of ${at} out` },
  ],
  steps: {
    restore: taskStep('restore-table', {
      ...onItsMember,
      task: ({ input }) => ({
        kind: 'restore-table',
        instanceId: input.instanceId,
        database: input.database,
        tableName: input.tableName,
        at: input.at,
        backupDirectory: input.backupDirectory,
        walDirectory: input.walDirectory,
        resultName: input.resultName ?? null,
      }),
    }),
  },
})
