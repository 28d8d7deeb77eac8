import { acknowledgeIncident, insertAuditEvent, inTransaction, showIncident } from '@floe/db'
import { operatorProcedure } from '../../procedures'
import { IncidentAcknowledge, IncidentAcknowledgeInput } from './incident.types'
import { incidentSummary } from './incident.views'

/**
 * Acknowledges an open incident, so that others see that somebody handles it. It stays open as long as its cause lasts.
 * The first person stays recorded; doing it again changes nothing. Throws `incident.not_found` or `incident.closed`.
 */
export const acknowledge = operatorProcedure
  .input(IncidentAcknowledgeInput)
  .output(IncidentAcknowledge)
  .mutation(({ ctx, input: { incidentId } }) =>
    inTransaction(ctx.ports.database.pool, async (tx) => {
      const { key, title, first } = await acknowledgeIncident(tx, incidentId, ctx.actor)
      if (first)
        await insertAuditEvent(tx, {
          actor: ctx.actor,
          action: 'incident.acknowledge',
          outcome: 'allowed',
          objectKind: 'incident',
          objectId: incidentId,
          detail: { key, title },
          ipAddress: ctx.ipAddress,
        })
      const incident = await showIncident(tx, incidentId)
      if (!incident) throw new Error(`incident ${incidentId} is gone within its transaction`)
      return { incident: incidentSummary(incident), first }
    }),
  )
