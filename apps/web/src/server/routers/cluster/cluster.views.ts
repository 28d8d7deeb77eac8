import {
  automaticBlockers,
  automaticShortage,
  type CandidatePurpose,
  type ClusterObserved,
  clusterConnectionForms,
  commitsWait,
  foreseeableMembers,
  judgeCandidates,
  operationRecords,
  primaryOf,
  requiresTls,
  waitsForStandbys,
} from '@floe/domain'
import type { ClusterDetail, ClusterSummary } from './cluster.types'

export function clusterSummary(cluster: ClusterObserved): ClusterSummary {
  const primary = primaryOf(cluster)
  return {
    clusterId: cluster.clusterId,
    name: cluster.name,
    primary: primary
      ? {
          instanceId: primary.instanceId,
          name: primary.name,
          state: primary.state,
          hostState: primary.hostState,
        }
      : null,
    members: cluster.members.length,
    streaming: (primary?.replication?.standbys ?? []).filter((s) => s.state === 'streaming').length,
    synchronous: primary?.replication?.synchronousStandbyNames ?? '',
    commitMode: cluster.commitMode,
    waiting: commitsWait(cluster),
    foreseeableMembers: foreseeableMembers(cluster.members, cluster.pageRepair).map((m) => m.name),
  }
}

/** In synchronous mode commits go on waiting until the first standby follows the new primary. */
function stages(cluster: ClusterObserved, way: CandidatePurpose) {
  const waits = cluster.synchronous !== null && waitsForStandbys(cluster.commitMode)
  return operationRecords[`${way}-cluster`].stages.map((stage) =>
    stage.name === 'rejoin' || stage.name === 'repoint' ? { ...stage, clientsCanWrite: !waits } : stage,
  )
}

export function clusterDetail(
  cluster: ClusterObserved,
  openOperation: ClusterDetail['openOperation'],
  lastAutomaticFailover: ClusterDetail['lastAutomaticFailover'],
): ClusterDetail {
  const known = cluster.members.flatMap((m) => (m.connection ? [m.connection] : []))
  const tls = cluster.members.every((m) => requiresTls(m.remoteAccess))
  const target = known[0] && { hosts: known, user: known[0].user, database: known[0].database, tls }
  return {
    cluster,
    candidates: {
      switchover: judgeCandidates(cluster, 'switchover'),
      failover: judgeCandidates(cluster, 'failover'),
    },
    stages: { switchover: stages(cluster, 'switchover'), failover: stages(cluster, 'failover') },
    waiting: commitsWait(cluster),
    automaticBlockers: automaticBlockers(cluster),
    automaticShortage: automaticShortage(cluster),
    lastAutomaticFailover,
    connections: target
      ? {
          primary: clusterConnectionForms(target, 'primary'),
          reads: clusterConnectionForms(target, 'reads'),
        }
      : null,
    openOperation,
    now: Date.now(),
  }
}
