import { onItsMember } from '../flashback'
import { refuseStandby } from '../guards'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Makes a table on the primary with the rows that one had just before it was dropped, truncated or rewritten. */
export const flashbackDroppedTable = defineOperation('flashback-dropped-table', {
  guard: refuseStandby,
  plan: ({ tableName, lost = 'dropped' }) => [
    { name: 'flashback', title: `Flash back ${tableName} to before it was ${lost}` },
  ],
  steps: {
    flashback: taskStep('flashback-dropped-table', {
      ...onItsMember,
      task: ({ input }) => ({
        kind: 'flashback-dropped-table',
        instanceId: input.instanceId,
        database: input.database,
        table: input.table,
        lsn: input.lsn,
        resultName: input.resultName ?? null,
        resultSchema: input.resultSchema ?? null,
      }),
    }),
  },
})
