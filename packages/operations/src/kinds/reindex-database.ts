import { refuseStandby } from '../guards'
import { memberOf } from '../instance-control'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** A large database, and transactions that a rebuild waits for, take hours. */
const DEADLINE_MS = 24 * 3_600_000
/** A host that is silent for longer is not waited for: an open operation would keep the cluster from a failover. */
const SILENT_MS = 20_000

/** Rebuilds the indexes of a database on the primary; standbys get them by its WAL. A retry goes on where it can. */
export const reindexDatabase = defineOperation('reindex-database', {
  guard: refuseStandby,
  plan: ({ database }) => [{ name: 'reindex', title: `Rebuild the indexes of database "${database}"` }],
  steps: {
    reindex: taskStep('reindex-database', {
      deadlineMs: DEADLINE_MS,
      on: ({ input }, cluster) => memberOf(cluster, input.instanceId),
      silence: {
        afterMs: SILENT_MS,
        fault: ({ name, hostName }) => ({
          code: 'agent.unreachable',
          message: `host "${hostName}" of instance "${name}" does not answer`,
          detail: 'The rebuild of an index may still be running there.',
          hint: 'Retry once the host answers: if its agent kept running, indexes that are already rebuilt are skipped.',
        }),
      },
      task: ({ input }) => ({
        kind: 'reindex-database',
        instanceId: input.instanceId,
        database: input.database,
      }),
    }),
  },
})
