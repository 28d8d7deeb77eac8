import { hostNotFound, hostRevoked, listHosts, type Queryable } from '@floe/db'
import { fault } from '@floe/domain'

/**
 * The host that a new instance is made on: the one wanted, or the one that answers and has the most free ports. Throws
 * `host.not_found`, `host.revoked` or `host.ambiguous`.
 */
export async function chooseHost(tx: Queryable, wanted: string | undefined): Promise<string> {
  const all = await listHosts(tx)
  if (wanted !== undefined) {
    const host = all.find(({ hostId }) => hostId === wanted)
    if (!host) throw hostNotFound(wanted)
    if (host.revokedAt) throw hostRevoked(host.name)
    return wanted
  }
  const hosts = all.filter((host) => host.revokedAt === null)
  const [only, ...others] = hosts
  if (!only)
    throw fault('host.not_found', 'no host is registered', {
      hint: 'The controller registers its own host when it starts: check "./floe status".',
    })
  if (others.length === 0) return only.hostId
  const freePorts = ({ facts }: (typeof hosts)[number]) =>
    facts ? facts.instancePorts.to - facts.instancePorts.from + 1 - facts.instancePorts.used : 0
  const [best] = hosts
    .filter((host) => host.state === 'online' && freePorts(host) > 0)
    .sort((a, b) => freePorts(b) - freePorts(a) || (a.name < b.name ? -1 : 1))
  if (!best)
    throw fault('host.ambiguous', 'no reachable host has a free port', {
      hint: 'Name the host of the new instance, or check the hosts.',
    })
  return best.hostId
}
