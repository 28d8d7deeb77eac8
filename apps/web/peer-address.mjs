/**
 * Writes into every request of this process whom it comes from, over whatever the client said under that name: whom the
 * kernel says its connection came from, or whom a trusted proxy stands for. Next hands on headers and nothing of the socket.
 * Import it before the server is made.
 */
import { subscribe } from 'node:diagnostics_channel'
import { clientAddress } from './trusted-proxies.mjs'

/** The same name as in src/server/peer-address.ts. */
export const PEER_HEADER = 'x-floe-peer'
/** The peer of a connection through the console's Unix socket: a user of this machine. */
export const LOCAL_PEER = 'local'

subscribe('http.server.request.start', (message) => {
  const { request, socket, server } = message
  // a Unix socket has a path for an address
  const local = typeof server.address() === 'string'
  request.headers[PEER_HEADER] = local
    ? LOCAL_PEER
    : clientAddress(socket.remoteAddress ?? 'unknown', request.headers['x-forwarded-for'])
})
