import { deleteWebhook, insertAuditEvent, inTransaction } from '@floe/db'
import { fault } from '@floe/domain'
import { adminProcedure } from '../../procedures'
import { WebhookRef } from './webhook.types'

/** Notifies an address no more; what was still to be sent is dropped. Throws `webhook.not_found`. */
export const remove = adminProcedure
  .input(WebhookRef)
  .output(WebhookRef)
  .mutation(async ({ ctx, input }) => {
    await inTransaction(ctx.ports.database.pool, async (tx) => {
      if (!(await deleteWebhook(tx, input.webhookId)))
        throw fault('webhook.not_found', `webhook "${input.webhookId}" does not exist`)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'webhook.remove',
        outcome: 'allowed',
        objectKind: 'webhook',
        objectId: input.webhookId,
        ipAddress: ctx.ipAddress,
      })
    })
    return input
  })
