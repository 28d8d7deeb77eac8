import { HostId, IncidentId, IncidentSeverity, InstanceId, OperationId } from '@floe/domain'
import { z } from 'zod'

export const Incident = z.object({
  incidentId: IncidentId,
  /** Names the cause, e.g. `host-offline:<host id>`. */
  key: z.string(),
  severity: IncidentSeverity,
  /** What happened. */
  title: z.string(),
  detail: z.string().nullable(),
  hint: z.string().nullable(),
  /** Where; the names are null where the thing does not exist any more. */
  hostId: HostId.nullable(),
  hostName: z.string().nullable(),
  instanceId: InstanceId.nullable(),
  instanceName: z.string().nullable(),
  operationId: OperationId.nullable(),
  operationTitle: z.string().nullable(),
  openedAt: z.number(),
  closedAt: z.number().nullable(),
  /** Why it is over, as a sentence; null while it is open. */
  closedBecause: z.string().nullable(),
  acknowledgedAt: z.number().nullable(),
  acknowledgedByName: z.string().nullable(),
})
export type Incident = z.infer<typeof Incident>

export const OpenIncidents = z.object({
  total: z.number().int(),
  critical: z.number().int(),
  /** Of them, those that nobody has taken note of. */
  unacknowledged: z.number().int(),
})
export type OpenIncidents = z.infer<typeof OpenIncidents>
