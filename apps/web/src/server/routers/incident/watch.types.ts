import { z } from 'zod'
import { OpenIncidents } from './incident.types'

/** Sent at once, and again whenever an incident opened, closed, was acknowledged or took other words. */
export const IncidentWatch = z.object({ open: OpenIncidents, now: z.number() })
export type IncidentWatch = z.infer<typeof IncidentWatch>
