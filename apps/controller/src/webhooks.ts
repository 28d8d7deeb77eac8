import {
  type DueDelivery,
  pruneDeliveries,
  readDueDeliveries,
  signWebhook,
  takeLease,
  webhookSecret,
  writeDeliveryAttempt,
} from '@floe/db'
import { runLoop, type Wake } from './loop'
import type { LaneParts } from './observe/host-lane'

const EVERY_MS = 5_000
/** A receiver that takes longer than this counts as gone. */
const ANSWER_MS = 5_000
const PRUNE_EVERY_MS = 3_600_000

/** The wait after the nth attempt in ms: 5 s, doubled each time up to an hour; null after some 12 hours. */
export function retryAfterMs(attempts: number): number | null {
  return attempts >= 22 ? null : Math.min(5_000 * 2 ** (attempts - 1), 3_600_000)
}

/** A message this old is given up with its next failed attempt, so that a receiver long gone does not gather a queue. */
const TOO_OLD_MS = 24 * 3_600_000

/** Tells webhooks of incidents, in their order, until each message is taken or given up; by one controller at a time. */
export async function deliverWebhooks(
  parts: Pick<LaneParts, 'db' | 'log' | 'database'> & { owner: string; authSecret: string; wake: Wake },
  signal: AbortSignal,
): Promise<void> {
  const { db, log, database, owner, wake } = parts
  let prunedAt = 0
  await runLoop({ name: 'deliver webhooks', everyMs: EVERY_MS, signal, log, database, wake }, async () => {
    const hold = await takeLease(db.pool, { name: 'deliver webhooks', owner, leaseMs: 60_000 })
    if (!hold) return
    if (Date.now() - prunedAt >= PRUNE_EVERY_MS) {
      await pruneDeliveries(db.pool)
      prunedAt = Date.now()
    }
    const due = await readDueDeliveries(db.pool)
    // receivers share nothing: one that hangs delays its own messages only
    await Promise.all(due.map((delivery) => attempt(delivery, parts, signal)))
    if (due.length > 0 && !signal.aborted) wake.now()
  })
}

async function attempt(
  delivery: DueDelivery,
  { db, log, authSecret }: Pick<LaneParts, 'db' | 'log'> & { authSecret: string },
  signal: AbortSignal,
): Promise<void> {
  const { deliveryId, webhookId, event } = delivery
  const attempts = delivery.attempts + 1
  const error = await send(delivery, webhookSecret(authSecret, webhookId), signal)
  // what was cut off by the end of this controller is sent again by the next: the id tells the receiver
  if (error !== null && signal.aborted) return
  const tooOld = Date.now() - delivery.createdAt.getTime() > TOO_OLD_MS
  const retryMs = error === null || tooOld ? null : retryAfterMs(attempts)
  await writeDeliveryAttempt(db.pool, deliveryId, { error, retryMs })
  if (error === null) log.info('webhook.delivered', { webhookId, deliveryId, event, attempts })
  else if (retryMs === null) log.error('webhook.given_up', { webhookId, deliveryId, event, attempts, error })
  else if (attempts === 1) log.warn('webhook.refused', { webhookId, deliveryId, event, error })
}

/** Null when the receiver has taken it, else why not. */
async function send(delivery: DueDelivery, secret: string, signal: AbortSignal): Promise<string | null> {
  const { deliveryId, url, body } = delivery
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Floe',
        ...signWebhook(secret, { id: deliveryId, at: Date.now(), body }),
      },
      body,
      // whoever was named is told, and nobody else
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    })
    await response.body?.cancel()
    return response.ok ? null : `it answered ${response.status}`
  } catch (error) {
    const { message, cause } = error as Error
    return (cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : null) ?? message
  }
}
