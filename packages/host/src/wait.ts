export type Answer<T> = T | null | undefined | false

/** Resolves after `ms`, or at once when `signal` is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted || ms <= 0) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end, { once: true })
  })
}

/** The pause between two looks, or what announces the next one. */
type EveryMs = number | (() => number)

/** Waits until `look` answers something; null after the bound. `everyMs` between looks. */
export async function waitFor<T>(
  look: () => Promise<Answer<T>> | Answer<T>,
  o: { boundMs: number; everyMs: EveryMs; signal?: AbortSignal },
): Promise<T | null> {
  const deadline = performance.now() + o.boundMs
  for (;;) {
    o.signal?.throwIfAborted()
    const seen = await look()
    if (seen) return seen
    if (performance.now() >= deadline) return null
    const pauseMs = typeof o.everyMs === 'number' ? o.everyMs : o.everyMs()
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/**
 * Waits until `look` answers something, whatever it throws meanwhile; after the bound it throws what was waited for, with
 * what the last look threw as the cause.
 */
export async function waitUntil<T>(
  what: string,
  look: () => Promise<Answer<T>> | Answer<T>,
  boundMs = 15_000,
  everyMs: EveryMs = 25,
): Promise<T> {
  let last: unknown
  const seen = await waitFor<T>(
    async () => {
      try {
        last = undefined
        return await look()
      } catch (error) {
        last = error
        return null
      }
    },
    { boundMs, everyMs },
  )
  if (seen) return seen
  throw new Error(
    `waited ${boundMs} ms in vain until ${what}`,
    last === undefined ? undefined : { cause: last },
  )
}

/** A deadline's parts: so much of it a pause of this process uses up at most. */
const PARTS = 10

/**
 * A deadline for what somebody else has to say. A pause of this process (stopped, starved, its machine paused) counts for a
 * tenth of it at most, however long it was: what was said meanwhile lies unread, and is read before `over` is called. Answers what calls it off.
 */
export function listenFor(ms: number, over: () => void): () => void {
  let parts = PARTS
  let timer: NodeJS.Timeout
  let last: NodeJS.Immediate | null = null
  const next = () => {
    timer = setTimeout(() => {
      if (--parts > 0) next()
      // comes after what can be read
      else last = setImmediate(over)
    }, ms / PARTS)
  }
  next()
  return () => {
    clearTimeout(timer)
    if (last) clearImmediate(last)
  }
}

const PAUSE_GROWS = 1.3

/** What comes soon is seen soon; what takes its time is not asked forty times a second by processors that it needs itself. */
export function growingPauses(firstMs: number, longestMs: number): () => number {
  let pauseMs = firstMs / PAUSE_GROWS
  return () => {
    pauseMs = Math.min(longestMs, pauseMs * PAUSE_GROWS)
    return pauseMs
  }
}
