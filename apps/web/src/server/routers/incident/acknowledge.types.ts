import { IncidentId } from '@floe/domain'
import { z } from 'zod'
import { Incident } from './incident.types'

export const IncidentAcknowledgeInput = z.object({ incidentId: IncidentId })
export const IncidentAcknowledge = z.object({
  /** As it is now: with whoever was the first to take note of it. */
  incident: Incident,
  /** False where somebody had taken note of it before. */
  first: z.boolean(),
})
