import { findOpenOperation, lastAutomaticFailover } from '@floe/db'
import type { OperationId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { ClusterDetail, ClusterRef } from './cluster.types'
import { clusterDetail } from './cluster.views'
import { requireCluster } from './find'

/**
 * A cluster with its members' positions, who could take over and what that would lose, and how to connect. Positions are
 * of the last reports; each member carries their age. Throws `cluster.not_found`.
 */
export const show = viewerProcedure
  .input(ClusterRef)
  .output(ClusterDetail)
  .query(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const cluster = await requireCluster(pool, input)
    const open = await findOpenOperation(pool, cluster.primaryInstanceId)
    const last = cluster.automatic ? await lastAutomaticFailover(pool, cluster.clusterId) : undefined
    return clusterDetail(
      cluster,
      open ? { operationId: open.operationId as OperationId, kind: open.kind } : null,
      last ? { ...last, operationId: last.operationId as OperationId } : null,
    )
  })
