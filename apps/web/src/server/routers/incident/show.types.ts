import { IncidentId } from '@floe/domain'
import { z } from 'zod'
import { Incident } from './incident.types'

export const IncidentShowInput = z.object({ incidentId: IncidentId })
export const IncidentShow = z.object({ incident: Incident, now: z.number() })
