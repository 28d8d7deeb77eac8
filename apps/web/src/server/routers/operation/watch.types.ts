import { OperationId } from '@floe/domain'
import { z } from 'zod'

/** Each event is an OperationShow with the log lines not sent before; the stream ends when the operation has ended. */
export const OperationWatchInput = z.object({
  operationId: OperationId,
  /** Set by tRPC when it reconnects: the id of the last log line that arrived. */
  lastEventId: z.string().nullish(),
})
