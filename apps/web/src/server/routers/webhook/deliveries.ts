import { listDeliveries } from '@floe/db'
import { fault, type IncidentId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { ms } from '../operation/operation.views'
import { seesWhole } from './sees-whole'
import { DeliveryList, WebhookRef } from './webhook.types'

/** What was sent or is still to be sent to a webhook, newest first, and how each message fared. Throws `webhook.not_found`. */
export const deliveries = viewerProcedure
  .input(WebhookRef)
  .output(DeliveryList)
  .query(async ({ ctx, input: { webhookId } }) => {
    const whole = seesWhole(ctx.actor)
    const rows = await listDeliveries(ctx.ports.database.pool, webhookId)
    if (!rows) throw fault('webhook.not_found', `webhook "${webhookId}" does not exist`)
    return {
      deliveries: rows.map((row) => ({
        ...row,
        error: whole ? row.error : row.error && 'failed',
        incidentId: row.incidentId as IncidentId | null,
        createdAt: row.createdAt.getTime(),
        deliveredAt: ms(row.deliveredAt),
        givenUpAt: ms(row.givenUpAt),
        nextAttemptAt: ms(row.nextAttemptAt),
      })),
      now: Date.now(),
    }
  })
