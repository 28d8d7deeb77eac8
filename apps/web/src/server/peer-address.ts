/** Set by peer-address.mjs for every request: whom it comes from. Behind a proxy that config.json does not name it is the proxy. */
export const PEER_HEADER = 'x-floe-peer'
/** The peer of a connection through the console's Unix socket: a user of this machine. */
export const LOCAL_PEER = 'local'

const ADDRESS = /^[0-9A-Fa-f.:]{2,45}(%\w+)?$/

/** The peer of a request, without IPv6's prefix of an IPv4 address; null where the server did not say. */
export function peerAddress(headers: Headers | undefined): string | null {
  const said = headers?.get(PEER_HEADER)
  if (said === LOCAL_PEER) return LOCAL_PEER
  return said && ADDRESS.test(said) ? said.replace(/^::ffff:(?=\d+\.)/, '') : null
}

/** A peer on this machine: a person at it, or a proxy before the console with everybody behind it. */
export const isLocalPeer = (peer: string | null) =>
  peer === null || peer === LOCAL_PEER || peer === '::1' || peer.startsWith('127.')

/**
 * The address for an audit row: the peer, and beside it what a proxy or the client says it stands for, which nobody has
 * checked.
 */
export function auditAddress(headers: Headers | undefined): string | null {
  const peer = peerAddress(headers)
  const stated = headers?.get('x-forwarded-for')?.split(',')[0]?.trim()
  const named = stated && ADDRESS.test(stated) && stated !== peer ? stated : null
  if (peer === null) return named === null ? null : `stated ${named}`
  return named === null ? peer : `${peer}, stated ${named}`
}
