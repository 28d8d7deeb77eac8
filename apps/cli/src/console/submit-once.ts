import { randomUUID } from 'node:crypto'
import { FaultError, fault } from '@floe/domain'
import { pause } from '@floe/host/wait'
import { TRPCClientError } from '@trpc/client'
import { InvalidArgumentError } from 'commander'

/** A console that is being restarted meanwhile is back by then. */
const REPEAT_MS = 30_000
const PAUSE_MS = 500

/** A key as the console accepts it; made by a caller that wants to repeat a command without running it twice. */
export function idempotencyKey(text: string): string {
  if (text.length < 8 || text.length > 100)
    throw new InvalidArgumentError('It must have 8 to 100 characters, e.g. those of a UUID.')
  return text
}

/**
 * Sends a request that submits an operation, under the caller's key or a random one. Where the connection broke before an
 * answer came, the console may have done it: the request is repeated by the same key, which answers the same operation. A
 * request that did not even get out is not repeated, so that a console that does not run is said at once.
 */
export async function submitOnce<T>(
  key: string | undefined,
  send: (idempotencyKey: string) => Promise<T>,
  { repeatMs = REPEAT_MS, pauseMs = PAUSE_MS }: { repeatMs?: number; pauseMs?: number } = {},
): Promise<T> {
  const used = key ?? randomUUID()
  let lost: number | null = null
  for (;;) {
    try {
      return await send(used)
    } catch (error) {
      if (!hasNoAnswer(error) || (lost === null && wasRefused(error))) throw error
      lost ??= Date.now()
      if (Date.now() - lost > repeatMs)
        throw fault('console.answer_lost', 'the connection to the console broke before it answered', {
          detail: `Whether it has begun what was asked is not known: ${error instanceof Error ? error.message : String(error)}.`,
          hint: `Run the command again with --idempotency-key ${used}: what was begun is not begun twice.`,
          cause: error,
        })
      await pause(pauseMs)
    }
  }
}

/** No answer of the console came, neither the one nor a refusal. */
const hasNoAnswer = (error: unknown): boolean => error instanceof TRPCClientError && error.data === undefined

/** Nobody listened: nothing was sent. */
function wasRefused(error: unknown): boolean {
  let cause = error
  for (let depth = 0; depth < 6 && cause; depth++) {
    if (cause instanceof FaultError) return true
    // without a console there is no socket, or nobody behind it
    if (['ECONNREFUSED', 'ENOENT'].includes(String((cause as { code?: unknown }).code))) return true
    cause = (cause as { cause?: unknown }).cause
  }
  return false
}
