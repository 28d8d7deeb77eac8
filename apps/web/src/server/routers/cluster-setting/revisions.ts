import { listClusterSettingRevisions } from '@floe/db'
import type { OperationId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { requireCluster } from '../cluster/find'
import { changesBack } from './changes'
import { ClusterSettingRevisions, ClusterSettingRevisionsInput } from './cluster-setting.types'

/**
 * The revisions of a cluster's settings that can be gone back to, newest first: after each operation on any of its members,
 * and as it was found before the first one.
 */
export const revisions = viewerProcedure
  .input(ClusterSettingRevisionsInput)
  .output(ClusterSettingRevisions)
  .query(async ({ ctx, input: { clusterId, limit } }) => {
    const { pool } = ctx.ports.database
    const cluster = await requireCluster(pool, { clusterId })
    const rows = await listClusterSettingRevisions(pool, { clusterId })
    const nameOf = new Map(cluster.members.map((m) => [m.instanceId as string, m.name]))
    const oldest = rows.at(-1)
    // of the rows of one operation the newest names the revision: then all its members had been written
    const named = rows.filter(
      (row, i) =>
        (row.operationId === null ? row === oldest : true) &&
        rows.findIndex((r) => r.operationId === row.operationId && r.operationId !== null) ===
          (row.operationId === null ? -1 : i),
    )
    return {
      revisions: named.slice(0, limit).map((row) => ({
        revisionId: row.id,
        operationId: row.operationId as OperationId | null,
        at: row.at.getTime(),
        reason: row.reason,
        actorName: row.actorName,
        changed: rows
          .filter((r) => (row.operationId === null ? r === row : r.operationId === row.operationId))
          .map((r) => nameOf.get(r.instanceId) ?? r.instanceId)
          .sort(),
        members: changesBack(rows, cluster, row.id),
      })),
    }
  })
