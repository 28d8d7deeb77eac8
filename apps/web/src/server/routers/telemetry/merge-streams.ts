import { type ChangeWatch, changeNouns } from '../../changes'
import type { TelemetryEvent } from './telemetry.types'

type Changed = Extract<TelemetryEvent, { type: 'changed' }>

/** What moved is reported at most this often; the same row's changes in between count as one. */
const GATHER_MS = 200
/** After a time of not hearing, any row may have changed. */
const everything = changeNouns.map((noun) => ({ noun, id: '*' }))

/** Changes of instances, operations, hosts and incidents; what comes faster than it is read is merged by row. */
export async function* changedEvents(changes: ChangeWatch, signal: AbortSignal): AsyncGenerator<Changed> {
  const waiting = new Map<string, Changed>()
  let wake = () => {}
  const stop = changes.onChange((change) => {
    for (const { noun, id } of change === 'all' ? everything : [change])
      waiting.set(`${noun} ${id}`, { type: 'changed', noun, id })
    wake()
  })
  const onAbort = () => wake()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    while (!signal.aborted) {
      if (waiting.size === 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      if (signal.aborted) return
      const now = [...waiting.values()]
      waiting.clear()
      yield* now
      await new Promise((resolve) => setTimeout(resolve, GATHER_MS))
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    stop()
  }
}

/** Both streams as one, whichever has something; ends with the first that ends. */
export async function* mergeStreams<A, B>(
  a: AsyncGenerator<A>,
  b: AsyncGenerator<B> | null,
): AsyncGenerator<A | B> {
  if (!b) return yield* a
  let nextA = a.next().then((r) => ({ of: 'a' as const, r }))
  let nextB = b.next().then((r) => ({ of: 'b' as const, r }))
  try {
    for (;;) {
      const { of, r } = await Promise.race([nextA, nextB])
      if (r.done) return
      yield r.value
      if (of === 'a') nextA = a.next().then((n) => ({ of: 'a' as const, r: n }))
      else nextB = b.next().then((n) => ({ of: 'b' as const, r: n }))
    }
  } finally {
    // both listen to the caller's abort signal and end by it; nobody waits for what they were about to say
    nextA.catch(() => {})
    nextB.catch(() => {})
    void a.return(undefined).catch(() => {})
    void b.return(undefined).catch(() => {})
  }
}
