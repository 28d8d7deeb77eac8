import { HostId, IncidentSeverity, IncidentState, InstanceId } from '@floe/domain'
import { z } from 'zod'
import { Incident, OpenIncidents } from './incident.types'

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
