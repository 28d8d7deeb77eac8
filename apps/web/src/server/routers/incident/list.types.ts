import { HostId, InstanceId, OperationId } from '@floe/domain'
import { z } from 'zod'

export const IncidentListInput = z
  .object({
    instanceId: InstanceId.optional(),
    /** Also those closed already, newest first. */
    closed: z.boolean().default(false),
    limit: z.number().int().min(1).max(200).default(100),
  })
  .default({ closed: false, limit: 100 })
export const Incident = z.object({
  incidentId: z.uuid(),
  key: z.string(),
  severity: z.string(),
  title: z.string(),
  detail: z.string().nullable(),
  hint: z.string().nullable(),
  hostId: HostId.nullable(),
  instanceId: InstanceId.nullable(),
  operationId: OperationId.nullable(),
  openedAt: z.number(),
  closedAt: z.number().nullable(),
})
export type Incident = z.infer<typeof Incident>
export const IncidentList = z.object({ incidents: z.array(Incident), now: z.number() })
