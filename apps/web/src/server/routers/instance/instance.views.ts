import type { InstanceView } from '@floe/db'
import {
  type ClusterId,
  connectionForms,
  encodePoints,
  HOST_STALE_MS,
  type HostId,
  type InstanceId,
  type OperationId,
  type Point,
  type RemoteAccess,
  requiresTls,
} from '@floe/domain'
import { ms } from '../operation/operation.views'
import type { InstanceDetail, InstanceSummary } from './instance.types'

export function instanceSummary(i: InstanceView, tps: readonly Point[]): InstanceSummary {
  return {
    instanceId: i.instanceId as InstanceId,
    name: i.name,
    hostId: i.host.hostId as HostId,
    hostName: i.host.name,
    hostState: i.host.state,
    cluster: { ...i.cluster, clusterId: i.cluster.clusterId as ClusterId },
    intent: i.intent,
    state: i.state,
    lastState: i.lastState,
    because: i.because,
    role: i.role,
    engineVersion: i.engineVersion,
    port: i.port,
    createdAt: i.createdAt.getTime(),
    observedAt: ms(i.observedAt),
    ageMs: i.ageMs,
    stale: i.ageMs === null || i.ageMs >= HOST_STALE_MS,
    pendingRestart: i.pendingRestart,
    user: i.user,
    creationFailed: i.creationFailed && { operationId: i.creationFailed.operationId as OperationId },
    openOperation: i.operation && { ...i.operation, operationId: i.operation.operationId as OperationId },
    tps: encodePoints(tps),
  }
}

export function instanceDetail(
  i: InstanceView,
  tps: readonly Point[],
  newestSeq: number | null,
  remoteAccess: RemoteAccess | null,
): Omit<InstanceDetail, 'protection' | 'flashback' | 'sharedServer'> {
  const connection = i.connection && {
    host: i.connection.host,
    port: i.connection.port,
    user: i.connection.user,
    database: i.connection.database,
  }
  return {
    ...instanceSummary(i, tps),
    systemIdentifier: i.systemIdentifier,
    directory: i.directory,
    startedAt: ms(i.startedAt),
    dataChecksums: i.dataChecksums,
    stallAfterMs: i.stallAfterMs,
    timeline: i.timeline,
    postmasterPid: i.postmasterPid,
    newestSeq,
    connection,
    forms: connection && connectionForms(connection, null, requiresTls(remoteAccess)),
    remoteAccess,
    processFault: i.state === 'unknown' ? null : i.processFault,
    now: Date.now(),
  }
}
