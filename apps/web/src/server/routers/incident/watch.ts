import { countOpenIncidents } from '@floe/db'
import { Bell } from '../../bell'
import { viewerProcedure } from '../../procedures'
import { keepAsking } from '../../still-allowed'
import type { IncidentWatch } from './incident.types'

/** Looked at again at least this often, also when no notification came. */
const LOOK_MS = 10_000
/** And at most this often, however many notifications come. */
const REST_MS = 200

/** How many incidents are open, sent again whenever one moved. */
export const watch = viewerProcedure.subscription(async function* ({
  ctx,
  signal,
}): AsyncGenerator<IncidentWatch> {
  const stillAllowed = keepAsking(ctx)
  let sent = ''
  const moved = new Bell()
  moved.ring()
  const stop = ctx.ports.changes.onChange((change) => {
    if (change === 'all' || change.noun === 'incident') moved.ring()
  })
  const onAbort = () => moved.ring()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    while (!signal?.aborted) {
      await stillAllowed()
      const told = moved.takeRing()
      const open = await countOpenIncidents(ctx.ports.database.pool)
      const content = JSON.stringify(open)
      if (told || content !== sent) {
        sent = content
        yield { open, now: Date.now() }
      }
      await new Promise((resolve) => setTimeout(resolve, REST_MS))
      await moved.wait(LOOK_MS)
    }
  } finally {
    signal?.removeEventListener('abort', onAbort)
    stop()
  }
})
