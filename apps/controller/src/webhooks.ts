import http from 'node:http'
import https from 'node:https'
import type { LookupFunction } from 'node:net'
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
import type { ControllerParts } from './parts'
import { type AddressRule, lookUpWithin, requireAddress } from './webhook-address'

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

/** Notifies webhooks of incidents, in their order, until each message is taken or given up; by one controller at a time. */
export async function deliverWebhooks(
  parts: Pick<ControllerParts, 'db' | 'log' | 'database' | 'owner'> & {
    authSecret: string
    rule: AddressRule
    wake: Wake
  },
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
  {
    db,
    log,
    authSecret,
    rule,
  }: Pick<ControllerParts, 'db' | 'log'> & { authSecret: string; rule: AddressRule },
  signal: AbortSignal,
): Promise<void> {
  const { deliveryId, webhookId, event } = delivery
  const attempts = delivery.attempts + 1
  const error = await send(delivery, { secret: webhookSecret(authSecret, webhookId), rule, signal })
  // what was cut off by the end of this controller is sent again by the next: the receiver knows it by its id
  if (error !== null && signal.aborted) return
  const tooOld = Date.now() - delivery.createdAt.getTime() > TOO_OLD_MS
  const retryMs = error === null || tooOld ? null : retryAfterMs(attempts)
  await writeDeliveryAttempt(db.pool, deliveryId, { error, retryMs })
  if (error === null) log.info('webhook.delivered', { webhookId, deliveryId, event, attempts })
  else if (retryMs === null) log.error('webhook.given_up', { webhookId, deliveryId, event, attempts, error })
  else if (attempts === 1) log.warn('webhook.refused', { webhookId, deliveryId, event, error })
}

/** Null when the receiver has taken it, else why not. */
async function send(
  { deliveryId, url, body }: DueDelivery,
  { secret, rule, signal }: { secret: string; rule: AddressRule; signal: AbortSignal },
): Promise<string | null> {
  const deadline = AbortSignal.timeout(ANSWER_MS)
  try {
    const target = new URL(url)
    requireAddress(target, rule)
    const status = await post(target, {
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Floe',
        ...signWebhook(secret, { id: deliveryId, at: Date.now(), body }),
      },
      body,
      lookup: lookUpWithin(rule),
      signal: AbortSignal.any([signal, deadline]),
    })
    return status >= 200 && status < 300 ? null : `it answered ${status}`
  } catch (error) {
    if (deadline.aborted) return `timeout: no answer within ${ANSWER_MS / 1_000} s`
    const { message, code } = error as NodeJS.ErrnoException
    return message || code || 'unknown error'
  }
}

type Posted = { headers: Record<string, string>; body: string; lookup: LookupFunction; signal: AbortSignal }

/** The status of the answer. Redirects are not followed: only the named address is notified. */
function post(url: URL, { body, headers, ...options }: Posted): Promise<number> {
  return new Promise((resolve, reject) => {
    const begin = url.protocol === 'https:' ? https.request : http.request
    // a connection of its own: one that is kept would have been checked for another message
    const request = begin(url, {
      ...options,
      method: 'POST',
      agent: false,
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    })
    request.on('error', reject)
    request.on('response', (response) => {
      resolve(response.statusCode ?? 0)
      response.destroy()
    })
    request.end(body)
  })
}
