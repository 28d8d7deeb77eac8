import { listRecoveries, readClusterOf } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { ProtectionHistory, ProtectionHistoryInput } from './protection.types'
import { nameOfSource } from './protection.views'

/** What each recovery after a crash found torn and repaired, newest first, as the engine counted it. */
export const history = viewerProcedure
  .input(ProtectionHistoryInput)
  .output(ProtectionHistory)
  .query(async ({ ctx, input: { instanceId, limit } }) => {
    const { pool } = ctx.ports.database
    const [recoveries, cluster] = await Promise.all([
      listRecoveries(pool, instanceId, limit),
      readClusterOf(pool, instanceId),
    ])
    return {
      recoveries: recoveries.map((r) => ({
        ...r,
        sources: (r.sources ?? []).map((s) => ({ ...s, member: nameOfSource(cluster, s.source) })),
      })),
      now: Date.now(),
    }
  })
