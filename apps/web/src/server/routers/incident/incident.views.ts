import type { IncidentView } from '@floe/db'
import {
  type HostId,
  type IncidentId,
  type InstanceId,
  type OperationId,
  operationRecord,
} from '@floe/domain'
import { ms } from '../operation/operation.views'
import type { Incident } from './incident.types'

export function incidentSummary({ operationKind, ...incident }: IncidentView): Incident {
  return {
    ...incident,
    incidentId: incident.incidentId as IncidentId,
    hostId: incident.hostId as HostId | null,
    instanceId: incident.instanceId as InstanceId | null,
    operationId: incident.operationId as OperationId | null,
    operationTitle: operationKind && operationRecord(operationKind).title,
    openedAt: incident.openedAt.getTime(),
    closedAt: ms(incident.closedAt),
    acknowledgedAt: ms(incident.acknowledgedAt),
  }
}
