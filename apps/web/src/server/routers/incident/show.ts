import { incidentNotFound, showIncident } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { IncidentShow, IncidentShowInput } from './incident.types'
import { incidentSummary } from './incident.views'

/** One incident. Throws `incident.not_found`. */
export const show = viewerProcedure
  .input(IncidentShowInput)
  .output(IncidentShow)
  .query(async ({ ctx, input: { incidentId } }) => {
    const incident = await showIncident(ctx.ports.database.pool, incidentId)
    if (!incident) throw incidentNotFound(incidentId)
    return { incident: incidentSummary(incident), now: Date.now() }
  })
