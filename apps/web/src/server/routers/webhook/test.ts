import { insertAuditEvent, inTransaction, queueTestDelivery } from '@floe/db'
import { fault } from '@floe/domain'
import { adminProcedure } from '../../procedures'
import { WebhookRef } from './webhook.types'

/** Sends a message that says nothing but that it arrived. Throws `webhook.not_found`. */
export const test = adminProcedure
  .input(WebhookRef)
  .output(WebhookRef)
  .mutation(async ({ ctx, input }) => {
    await inTransaction(ctx.ports.database.pool, async (tx) => {
      if (!(await queueTestDelivery(tx, input.webhookId)))
        throw fault('webhook.not_found', `webhook "${input.webhookId}" does not exist`)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'webhook.test',
        outcome: 'allowed',
        objectKind: 'webhook',
        objectId: input.webhookId,
        ipAddress: ctx.ipAddress,
      })
    })
    return input
  })
