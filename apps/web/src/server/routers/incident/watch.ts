import { countOpenIncidents } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { keepAsking } from '../../still-allowed'
import type { IncidentWatch } from './watch.types'

/** Looked at again at least this often, also when no notification came. */
const LOOK_MS = 10_000
/** And at most this often, however many notifications come. */
const REST_MS = 200

/** How many incidents are open, told again whenever one moved. */
export const watch = viewerProcedure.subscription(async function* ({
  ctx,
  signal,
}): AsyncGenerator<IncidentWatch> {
  const stillAllowed = keepAsking(ctx)
  let moved = true
  let sent = ''
  let wake = () => {}
  const stop = ctx.ports.changes.onChange((change) => {
    if (change !== 'all' && change.noun !== 'incident') return
    moved = true
    wake()
  })
  const onAbort = () => wake()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    while (!signal?.aborted) {
      await stillAllowed()
      const told = moved
      moved = false
      const open = await countOpenIncidents(ctx.ports.database.pool)
      const content = JSON.stringify(open)
      if (told || content !== sent) {
        sent = content
        yield { open, now: Date.now() }
      }
      await new Promise((resolve) => setTimeout(resolve, REST_MS))
      if (!moved && !signal?.aborted)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, LOOK_MS)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
    }
  } finally {
    signal?.removeEventListener('abort', onAbort)
    stop()
  }
})
