import { toFault } from '@floe/domain'

/** A server's words, which it always says in English; SQLSTATE says only that it is an internal error. */
const FAILED = /checkpoint request failed/

/**
 * Does something that begins with a checkpoint, and once more where that failed: the guard of page repair ends a checkpoint
 * without images whose redo point no source has reached, and has images written from then on, so that the next one succeeds.
 */
export async function withSecondCheckpoint<T>(
  attempt: (again: boolean) => Promise<T>,
  log: (text: string) => void,
): Promise<T> {
  try {
    return await attempt(false)
  } catch (error) {
    const { message, detail } = toFault(error)
    if (!FAILED.test(message) && !FAILED.test(detail ?? '')) throw error
    log('the checkpoint failed, the server log says why; trying once more')
    return attempt(true)
  }
}
