/**
 * Writes into every request of this process whom its connection came from, as the kernel says it, over whatever the
 * client said under that name. Next hands on headers and nothing of the socket, and X-Forwarded-For is the client's to
 * choose. Import it before the server is made.
 */
import { subscribe } from 'node:diagnostics_channel'

/** The same name as in src/server/peer-address.ts. */
export const PEER_HEADER = 'x-floe-peer'

subscribe('http.server.request.start', (message) => {
  const { request, socket } = message
  request.headers[PEER_HEADER] = socket.remoteAddress ?? 'unknown'
})
