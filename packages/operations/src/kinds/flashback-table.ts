import { onItsMember } from '../flashback'
import { refuseStandby } from '../guards'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** Makes a table on the primary with the rows of the moment; standbys get it by its WAL. */
export const flashbackTable = defineOperation('flashback-table', {
  guard: refuseStandby,
  plan: ({ tableName, at }) => [{ name: 'flashback', title: `Flash back ${tableName} to ${at}` }],
  steps: {
    flashback: taskStep('flashback-table', {
      ...onItsMember,
      task: ({ input }) => ({
        kind: 'flashback-table',
        instanceId: input.instanceId,
        database: input.database,
        table: input.table,
        at: input.at,
        resultName: input.resultName ?? null,
      }),
    }),
  },
})
