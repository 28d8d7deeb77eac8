import { z } from 'zod'

export const WebhookId = z.uuid()
export const WebhookRef = z.object({ webhookId: WebhookId })

export const WebhookAddInput = z.object({
  url: z
    .url({ protocol: /^https?$/, error: 'must be an address that begins with http:// or https://' })
    .max(2_000),
})
/** The secret is shown this once; by the Standard Webhooks it verifies the header webhook-signature. */
export const WebhookAdded = z.object({ webhookId: WebhookId, secret: z.string() })

export const Webhook = z.object({
  webhookId: WebhookId,
  url: z.string(),
  createdAt: z.number(),
  actorName: z.string(),
  /** Its newest message and how it fared; null while there was none. */
  last: z
    .object({
      event: z.string(),
      createdAt: z.number(),
      attempts: z.number().int(),
      deliveredAt: z.number().nullable(),
      givenUpAt: z.number().nullable(),
      error: z.string().nullable(),
    })
    .nullable(),
  /** Messages still to be sent. */
  waiting: z.number().int(),
})
export type Webhook = z.infer<typeof Webhook>
export const WebhookList = z.object({ webhooks: z.array(Webhook), now: z.number() })
