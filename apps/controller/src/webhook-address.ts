import { lookup as resolve } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { fault } from '@floe/domain'

/** Where a receiver of webhooks is not: this machine, its link, what only a site knows, and what is no single machine. */
const refused = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/4',
  '255.255.255.255/32',
  '::/128',
  '::1/128',
  'fc00::/7',
  'fe80::/10',
  'ff00::/8',
]

/** Says of an address whether messages may be sent there. */
export type AddressRule = (address: string) => boolean

/**
 * The rule of an installation: not what is refused above, nor an address of its own (`own`, and this machine's as they are
 * now), unless config.json allows it (`webhookAddresses`: addresses or networks).
 */
export function addressRule(own: readonly string[], allowed: readonly string[]): AddressRule {
  const closed = listOf([...refused, ...own.filter((address) => isIP(address) !== 0)])
  const open = listOf(allowed)
  return (address) => {
    const plain = unmapped(address)
    if (contains(open, plain)) return true
    if (contains(closed, plain)) return false
    return !Object.values(networkInterfaces()).some((of) => of?.some((i) => i.address === plain))
  }
}

/**
 * A look-up for a connection: it answers only addresses that the rule allows, and the connection is made to one of those,
 * never to what a second look-up would say. Fails when one of a name's addresses is refused.
 */
export function lookUpWithin(rule: AddressRule): LookupFunction {
  return (hostname, options, done) =>
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error) return done(error, [])
      const wrong = found.find(({ address }) => !rule(address))
      if (wrong) return done(refusedAddress(hostname, wrong.address), [])
      if (options.all) return done(null, found)
      const [first] = found
      if (!first) return done(refusedAddress(hostname, 'no address'), [])
      done(null, first.address, first.family)
    })
}

/** Throws for a URL that names a refused address itself: a connection looks nothing up then. */
export function requireAddress(url: URL, rule: AddressRule): void {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0 && !rule(host)) throw refusedAddress(host, host)
}

const refusedAddress = (host: string, address: string) =>
  fault(
    'webhook.address_refused',
    host === address ? `address ${address} is not allowed` : `"${host}" is ${address}, which is not allowed`,
    {
      hint: 'Addresses of the console’s own machine and network have to be named in config.json, as "webhookAddresses".',
    },
  )

function listOf(entries: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    const family = isIP(address)
    if (family === 0)
      throw fault('webhook.address_invalid', `"${entry}" is neither an address nor a network`, {
        detail: 'It stands in "webhookAddresses" of config.json.',
      })
    list.addSubnet(address, Number(bits ?? (family === 4 ? 32 : 128)), family === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}

const contains = (list: BlockList, address: string) =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** An IPv4 address that is written as an IPv6 one: mapped, or behind the well-known prefix of a translator. */
function unmapped(address: string): string {
  if (isIP(address) !== 6) return address
  const [, mapped] =
    /^\[(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}:[0-9a-f]{1,4})\]$/.exec(
      new URL(`http://[${address.split('%')[0]}]/`).hostname,
    ) ?? []
  if (!mapped) return address.split('%')[0] as string
  const [high = 0, low = 0] = mapped.split(':').map((part) => Number.parseInt(part, 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
