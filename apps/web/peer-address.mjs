/**
 * Writes into every request of this process whom its connection came from, as the kernel says it, over whatever the
 * client said under that name. Next hands on headers and nothing of the socket, and X-Forwarded-For is the client's to
 * choose. Import it before the server is made.
 */
import { subscribe } from 'node:diagnostics_channel'

/** The same name as in src/server/peer-address.ts. */
export const PEER_HEADER = 'x-floe-peer'
/** Whoever came through the console's Unix socket: somebody on this machine. */
export const LOCAL_PEER = 'local'

subscribe('http.server.request.start', (message) => {
  const { request, socket, server } = message
  // a Unix socket has a path for an address
  const local = typeof server.address() === 'string'
  request.headers[PEER_HEADER] = local ? LOCAL_PEER : (socket.remoteAddress ?? 'unknown')
})
