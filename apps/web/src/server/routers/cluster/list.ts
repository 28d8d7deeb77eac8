import { listClusters } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { ClusterList } from './cluster.types'
import { clusterSummary } from './cluster.views'

/** All clusters by name, also those of one instance, as last observed. */
export const list = viewerProcedure.output(ClusterList).query(async ({ ctx }) => ({
  clusters: (await listClusters(ctx.ports.database.pool)).map(clusterSummary),
  now: Date.now(),
}))
