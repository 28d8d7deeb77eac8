import { z } from 'zod'

/** How bad an incident is: critical where something is down, waits or may be lost, warning where it may come to that. */
export const IncidentSeverity = z.enum(['critical', 'warning'])
export type IncidentSeverity = z.infer<typeof IncidentSeverity>

/** An incident is open as long as its cause lasts; nobody closes one by hand. */
export const IncidentState = z.enum(['open', 'closed'])
export type IncidentState = z.infer<typeof IncidentState>
