import { createHmac, randomUUID } from 'node:crypto'
import type { Queryable } from '../database'

export const webhookEvents = ['incident.opened', 'incident.closed', 'webhook.test'] as const
export type WebhookEvent = (typeof webhookEvents)[number]

/**
 * The secret that a webhook's messages are signed with, in the form of the Standard Webhooks (`whsec_` and base64). It is
 * stored nowhere: it follows from the installation's own secret and the webhook's id, and ends with either.
 */
export function webhookSecret(authSecret: string, webhookId: string): string {
  return `whsec_${createHmac('sha256', authSecret).update(`floe webhook ${webhookId}`).digest('base64')}`
}

/** The headers of a message by the Standard Webhooks: id, seconds since the epoch, and `v1,` HMAC-SHA256 of all three. */
export function signWebhook(
  secret: string,
  message: { id: string; at: number; body: string },
): Record<string, string> {
  const seconds = String(Math.floor(message.at / 1_000))
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signed = createHmac('sha256', key).update(`${message.id}.${seconds}.${message.body}`).digest('base64')
  return { 'webhook-id': message.id, 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signed}` }
}

export type WebhookView = {
  webhookId: string
  url: string
  createdAt: Date
  actorName: string
  /** Its newest message. */
  last: {
    event: WebhookEvent
    createdAt: string
    attempts: number
    deliveredAt: string | null
    givenUpAt: string | null
    error: string | null
  } | null
  /** Messages still to be sent. */
  waiting: number
}

/** All webhooks, oldest first, each with how its newest message fared. */
export async function listWebhooks(on: Queryable): Promise<WebhookView[]> {
  const { rows } = await on.query<WebhookView>(
    `SELECT w.id AS "webhookId", w.url, w."createdAt", w."actorName",
            (SELECT json_build_object('event', d.event, 'createdAt', d."createdAt", 'attempts', d.attempts,
                      'deliveredAt', d."deliveredAt", 'givenUpAt', d."givenUpAt", 'error', d.error)
               FROM webhook_delivery d WHERE d."webhookId" = w.id ORDER BY d."createdAt" DESC LIMIT 1) AS last,
            (SELECT count(*)::int FROM webhook_delivery d
              WHERE d."webhookId" = w.id AND d."deliveredAt" IS NULL AND d."givenUpAt" IS NULL) AS waiting
       FROM webhook w ORDER BY w."createdAt", w.id`,
  )
  return rows
}

/** Makes a webhook; it is notified of what opens or closes from then on. Answers its id. */
export async function insertWebhook(
  on: Queryable,
  webhook: { url: string; actor: { id: string; name: string } },
): Promise<string> {
  const id = randomUUID()
  await on.query(`INSERT INTO webhook (id, url, actor, "actorName") VALUES ($1, $2, $3, $4)`, [
    id,
    webhook.url,
    webhook.actor.id,
    webhook.actor.name,
  ])
  return id
}

/** Removes a webhook with what was still to be sent to it; false when there was none. */
export async function deleteWebhook(on: Queryable, webhookId: string): Promise<boolean> {
  const { rowCount } = await on.query('DELETE FROM webhook WHERE id = $1', [webhookId])
  return rowCount === 1
}

/** Queues a message that says nothing but that it arrived; false when there is no such webhook. */
export async function queueTestDelivery(on: Queryable, webhookId: string): Promise<boolean> {
  const { rows } = await on.query<{ queued: boolean }>('SELECT queue_webhook_test($1) AS queued', [webhookId])
  return rows[0]?.queued ?? false
}

export type DeliveryView = {
  deliveryId: string
  event: WebhookEvent
  incidentId: string | null
  title: string | null
  createdAt: Date
  attempts: number
  deliveredAt: Date | null
  givenUpAt: Date | null
  nextAttemptAt: Date | null
  error: string | null
}

/** The newest messages of a webhook, newest first; undefined when there is no such webhook. */
export async function listDeliveries(
  on: Queryable,
  webhookId: string,
  limit = 50,
): Promise<DeliveryView[] | undefined> {
  const { rows } = await on.query<DeliveryView>(
    `SELECT id AS "deliveryId", event, "incidentId", body #>> '{data,title}' AS title, "createdAt", attempts,
            "deliveredAt", "givenUpAt", error,
            CASE WHEN "deliveredAt" IS NULL AND "givenUpAt" IS NULL THEN "nextAttemptAt" END AS "nextAttemptAt"
       FROM webhook_delivery WHERE "webhookId" = $1 ORDER BY "createdAt" DESC, id LIMIT $2`,
    [webhookId, limit],
  )
  if (rows.length > 0) return rows
  const { rowCount } = await on.query('SELECT FROM webhook WHERE id = $1', [webhookId])
  return rowCount === 1 ? [] : undefined
}

export type DueDelivery = {
  deliveryId: string
  webhookId: string
  url: string
  event: WebhookEvent
  body: string
  attempts: number
  createdAt: Date
}

/** Messages whose time has come, oldest first. Of a webhook the oldest only, so that a closing never overtakes its opening. */
export async function readDueDeliveries(on: Queryable, limit = 20): Promise<DueDelivery[]> {
  const { rows } = await on.query<DueDelivery>(
    `SELECT d.* FROM (
       SELECT DISTINCT ON (d."webhookId") d.id AS "deliveryId", d."webhookId", w.url, d.event, d.body::text AS body,
              d.attempts, d."createdAt", d."nextAttemptAt"
         FROM webhook_delivery d JOIN webhook w ON w.id = d."webhookId"
        WHERE d."deliveredAt" IS NULL AND d."givenUpAt" IS NULL
        ORDER BY d."webhookId", d."createdAt", d.id) d
      WHERE d."nextAttemptAt" <= now() ORDER BY d."createdAt" LIMIT $1`,
    [limit],
  )
  return rows
}

/** Writes how an attempt ended: delivered, to be tried again after `retryMs`, or given up (both null). */
export async function writeDeliveryAttempt(
  on: Queryable,
  deliveryId: string,
  outcome: { error: string | null; retryMs: number | null },
): Promise<void> {
  await on.query(
    `UPDATE webhook_delivery
        SET attempts = attempts + 1, error = $2,
            "deliveredAt" = CASE WHEN $2::text IS NULL THEN now() END,
            "givenUpAt" = CASE WHEN $2::text IS NOT NULL AND $3::float8 IS NULL THEN now() END,
            "nextAttemptAt" = now() + make_interval(secs => coalesce($3::float8, 0) / 1000)
      WHERE id = $1`,
    [deliveryId, outcome.error, outcome.retryMs],
  )
}

/** Removes messages that ended a week ago; answers how many. */
export async function pruneDeliveries(on: Queryable): Promise<number> {
  const { rowCount } = await on.query(
    `DELETE FROM webhook_delivery WHERE coalesce("deliveredAt", "givenUpAt") < now() - interval '7 days'`,
  )
  return rowCount ?? 0
}
