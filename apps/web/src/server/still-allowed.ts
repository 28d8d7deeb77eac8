import { fault } from '@floe/domain'
import { TRPCError } from '@trpc/server'
import type { Context } from './context'
import { httpCodeOf } from './faults'

const ASK_MS = 30_000

/**
 * For streams: a check that asks again every 30 s whether there still is a session, and throws `session.missing` when it
 * was ended or the person left the organisation. A control database that is away ends no stream.
 */
export function keepAsking(
  ctx: Pick<Context, 'findActor'>,
  now: () => number = Date.now,
): () => Promise<void> {
  let asked = now()
  return async () => {
    if (now() - asked < ASK_MS) return
    asked = now()
    const actor = await ctx.findActor().catch((error: unknown) => {
      if (httpCodeOf(error) === 'SERVICE_UNAVAILABLE') return undefined
      throw error
    })
    if (actor !== null) return
    const missing = fault('session.missing', 'you are not signed in', { hint: 'Sign in and try again.' })
    throw new TRPCError({ code: 'UNAUTHORIZED', message: missing.message, cause: missing })
  }
}
