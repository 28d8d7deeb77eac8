import { insertAuditEvent, insertWebhook, inTransaction, webhookSecret } from '@floe/db'
import { adminProcedure } from '../../procedures'
import { WebhookAdded, WebhookAddInput } from './webhook.types'

/** Notifies an address of every incident from now on. Admins: the controller sends to whatever address is named. */
export const add = adminProcedure
  .input(WebhookAddInput)
  .output(WebhookAdded)
  .mutation(async ({ ctx, input }) => {
    const webhookId = await inTransaction(ctx.ports.database.pool, async (tx) => {
      const id = await insertWebhook(tx, { url: input.url, actor: ctx.actor })
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'webhook.add',
        outcome: 'allowed',
        objectKind: 'webhook',
        objectId: id,
        // an address may hold a token of the receiver's
        detail: { origin: new URL(input.url).origin },
        ipAddress: ctx.ipAddress,
      })
      return id
    })
    return { webhookId, secret: webhookSecret(ctx.ports.files.authSecret, webhookId) }
  })
