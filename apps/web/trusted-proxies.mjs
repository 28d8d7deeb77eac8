/**
 * Whom a connection stands for. X-Forwarded-For is the client's to choose, save what a trusted proxy added at its end: only
 * of a peer that config.json names in `trustedProxies` it is read, from the right, up to the first address that is no such
 * proxy's. What is left of that is never looked at.
 */
import { BlockList, isIP } from 'node:net'

let proxies = new BlockList()

const familyOf = (address) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')
/** An IPv4 address as such, also where the socket writes it as an IPv6 one. */
const plain = (address) => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** Takes addresses and networks (10.0.0.7, fd00::/64) for those of proxies, in the place of all before. Throws where one is neither. */
export function trustProxies(entries) {
  if (!Array.isArray(entries)) throw new Error('"trustedProxies" in config.json is not a list of addresses')
  const named = new BlockList()
  for (const entry of entries) {
    const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? []
    const most = isIP(address) === 6 ? 128 : 32
    if (isIP(address) === 0 || Number(bits ?? most) > most)
      throw new Error(`"${entry}" in "trustedProxies" of config.json is neither an address nor a network`)
    named.addSubnet(address, Number(bits ?? most), familyOf(address))
  }
  proxies = named
}

/** Whether an address is a trusted proxy's. */
export function isTrustedProxy(address) {
  const one = plain(address).replace(/%.*/, '')
  return isIP(one) !== 0 && proxies.check(one, familyOf(one))
}

/** The address of whom a peer stands for: its own unless it is a trusted proxy that says otherwise. */
export function clientAddress(peer, forwardedFor) {
  let client = peer
  for (const stated of (forwardedFor ?? '').split(',').reverse()) {
    if (!isTrustedProxy(client)) return client
    const address = plain(stated.trim())
    // whatever else it says is no address: the proxy that passed it on is the last one known
    if (isIP(address) === 0) return client
    client = address
  }
  return client
}
