import { HostId, IncidentId, IncidentSeverity, IncidentState, InstanceId, OperationId } from '@floe/domain'
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

export const IncidentAcknowledgeInput = z.object({ incidentId: IncidentId })
export const IncidentAcknowledge = z.object({
  /** As it is now: with the first person who acknowledged it. */
  incident: Incident,
  /** False where somebody had taken note of it before. */
  first: z.boolean(),
})

export const IncidentListInput = z
  .object({
    instanceId: InstanceId.optional(),
    hostId: HostId.optional(),
    severity: IncidentSeverity.optional(),
    state: z.enum([...IncidentState.options, 'all']).default('open'),
    limit: z.number().int().min(1).max(200).default(100),
    /** `nextCursor` of the page before. */
    cursor: z.string().max(80).optional(),
  })
  .default({ state: 'open', limit: 100 })
export const IncidentList = z.object({
  /** Open ones first, each newest first. */
  incidents: z.array(Incident),
  nextCursor: z.string().nullable(),
  /** All that are open, whatever was asked for. */
  open: OpenIncidents,
  now: z.number(),
})

export const IncidentShowInput = z.object({ incidentId: IncidentId })
export const IncidentShow = z.object({ incident: Incident, now: z.number() })

/** Sent at once, and again whenever an incident opened, closed, was acknowledged or took other words. */
export const IncidentWatch = z.object({ open: OpenIncidents, now: z.number() })
export type IncidentWatch = z.infer<typeof IncidentWatch>
