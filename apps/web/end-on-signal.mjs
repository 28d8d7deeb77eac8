/**
 * Ends the console when it is asked to: no new requests, a moment for those that have begun, and then what the process
 * still holds in memory for the control database. Next would wait for open connections, and a live stream is one.
 */

/** For answers that have begun. */
const ANSWERS_MS = 500
/** For a control database that does not answer. */
const CLOSE_MS = 2_000

const atMost = (ms, work) => Promise.race([work, new Promise((resolve) => setTimeout(resolve, ms).unref())])

/** `server` answers the server, where it listens already; `close` writes what is held. */
export function endOnSignal(server, close) {
  const end = async () => {
    const closed = new Promise((resolve) => (server() ? server().close(resolve) : resolve()))
    await atMost(ANSWERS_MS, closed)
    await atMost(CLOSE_MS, close())
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => void end())
}
