import { endedOperationStates } from '@floe/domain'
import { tracked } from '@trpc/server'
import { Bell } from '../../bell'
import { viewerProcedure } from '../../procedures'
import { keepAsking } from '../../still-allowed'
import { OperationWatchInput } from './operation.types'
import { readOperation } from './show'

/** Looked at again at least this often, also when no notification came. */
const LOOK_MS = 1_000
/** And at most this often, however many notifications come. */
const REST_MS = 100

/** An operation as it moves, each time with the log lines not sent before; ends with its end. */
export const watch = viewerProcedure.input(OperationWatchInput).subscription(async function* ({
  ctx,
  input,
  signal,
}) {
  let lastLogId = Number(input.lastEventId ?? 0) || 0
  const stillAllowed = keepAsking(ctx)
  let sent = ''
  const moved = new Bell()
  const stop = ctx.ports.changes.onChange((change) => {
    if (change === 'all' || (change.noun === 'operation' && change.id === input.operationId)) moved.ring()
  })
  const onAbort = () => moved.ring()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    while (!signal?.aborted) {
      await stillAllowed()
      moved.takeRing()
      const { operation, log, now } = await readOperation(ctx.ports, input.operationId, lastLogId)
      const content = JSON.stringify(operation)
      if (content !== sent || log.length > 0) {
        sent = content
        lastLogId = log.at(-1)?.id ?? lastLogId
        yield tracked(String(lastLogId), { operation, log, now })
      }
      // its last log lines may be written just after its end
      const ended = endedOperationStates.includes(operation.state)
      if (ended && log.length === 0) return
      await new Promise((resolve) => setTimeout(resolve, REST_MS))
      if (!ended) await moved.wait(LOOK_MS)
    }
  } finally {
    signal?.removeEventListener('abort', onAbort)
    stop()
  }
})
