import { makeTestAuthority, type TestAuthority } from './certificates'
import { ThrowawayAgent } from './throwaway-agent'
import { makeThrowawayHome, type ThrowawayHome } from './throwaway-home'
import { type NetworkHost, ThrowawayNetwork } from './throwaway-network'

export type ThrowawayHost = {
  /** `h1`, `h2`, … */
  name: string
  hostId: string
  address: string
  network: NetworkHost
  home: ThrowawayHome
  agent: ThrowawayAgent
}

export type ThrowawayHosts = {
  network: ThrowawayNetwork
  authority: TestAuthority
  hosts: ThrowawayHost[]
  /** Ends agents and engines, then takes directories and network away. */
  remove(): Promise<void>
}

/**
 * So many hosts of one installation, each with a real agent (from its bundle) in a network namespace of its own. Instances
 * listen on their host's address, so that others reach them as on a real network. Needs root: ask
 * `ThrowawayNetwork.missing()` first.
 */
export async function startThrowawayHosts(
  count: number,
  o: { bundle: string; instances?: number },
): Promise<ThrowawayHosts> {
  const network = ThrowawayNetwork.create()
  const authority = await makeTestAuthority()
  const hosts: ThrowawayHost[] = []
  const remove = async () => {
    for (const host of hosts) network.heal(host.network)
    await Promise.allSettled(hosts.map((host) => host.agent.remove()))
    network.remove()
  }
  try {
    for (let n = 1; n <= count; n++) {
      const place = network.addHost()
      const home = await makeThrowawayHome({
        authority,
        ...(o.instances === undefined ? {} : { instances: o.instances }),
        overrides: { hostName: `h${n}`, hostAddress: place.address },
      })
      const agent = new ThrowawayAgent(home, o.bundle, (command) => [...place.command, ...command])
      const { hostId, hostName: name } = home.installation
      hosts.push({ name, hostId, address: place.address, network: place, home, agent })
    }
    await Promise.all(hosts.map((host) => host.agent.start()))
  } catch (error) {
    await remove()
    throw error
  }
  return { network, authority, hosts, remove }
}
