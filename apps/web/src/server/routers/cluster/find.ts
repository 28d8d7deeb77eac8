import { findCluster, type Queryable, readCluster } from '@floe/db'
import { type ClusterObserved, fault } from '@floe/domain'
import type { z } from 'zod'
import type { ClusterRef } from './cluster.types'

/** The cluster that is meant; throws `cluster.not_found`. */
export async function requireCluster(
  on: Queryable,
  ref: z.output<typeof ClusterRef>,
): Promise<ClusterObserved> {
  const cluster = 'clusterId' in ref ? await readCluster(on, ref.clusterId) : await findCluster(on, ref.name)
  if (!cluster)
    throw fault('cluster.not_found', `cluster "${'name' in ref ? ref.name : ref.clusterId}" does not exist`)
  return cluster
}
