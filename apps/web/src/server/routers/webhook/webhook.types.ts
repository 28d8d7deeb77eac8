import { IncidentId } from '@floe/domain'
import { z } from 'zod'

export const WebhookId = z.uuid()
export const WebhookRef = z.object({ webhookId: WebhookId })

export const WebhookAddInput = z.object({
  url: z
    .url({ protocol: /^https?$/, error: 'must be an address that begins with http:// or https://' })
    .max(2_000)
    .refine((text) => !URL.canParse(text) || (!new URL(text).username && !new URL(text).password), {
      error: 'must not hold a user or password: messages are signed',
    }),
})
/** The secret is shown this once; by the Standard Webhooks it verifies the header webhook-signature. */
export const WebhookAdded = z.object({ webhookId: WebhookId, secret: z.string() })

export const Webhook = z.object({
  webhookId: WebhookId,
  /** Whole for admins; its origin only for others, since it may hold a token of the receiver's. */
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
/** A message, as it fared. */
export const Delivery = z.object({
  /** What the receiver gets as `webhook-id`, with each attempt. */
  deliveryId: z.uuid(),
  event: z.string(),
  incidentId: IncidentId.nullable(),
  /** What happened; null for a test. */
  title: z.string().nullable(),
  createdAt: z.number(),
  attempts: z.number().int(),
  deliveredAt: z.number().nullable(),
  givenUpAt: z.number().nullable(),
  /** When it is tried again; null once it has ended. */
  nextAttemptAt: z.number().nullable(),
  /** Why the last attempt was none. */
  error: z.string().nullable(),
})
export type Delivery = z.infer<typeof Delivery>
/** Newest first, the newest 50; what ended is kept for a week. */
export const DeliveryList = z.object({ deliveries: z.array(Delivery), now: z.number() })
export const WebhookList = z.object({ webhooks: z.array(Webhook), now: z.number() })
