import { type AgentAddress, hostRevoked } from '@floe/domain'
import { type AgentClient, createAgentClient } from './client'

export type AgentPoolOptions<Opened> = {
  /** PEM of the installation's authority. */
  authority: string
  /** Certificate and key of this process; asked before every use, since they are renewed in place. */
  identity(): string
  /** What of a host's agent is handed out; each `connect` is a client with connections of its own, which end with it. */
  open(connect: (timeoutMs?: number) => AgentClient['trpc']): Opened
}

type Entry<Opened> = { opened: Opened; address: AgentAddress; identity: string; end(): void }

/**
 * What speaks to the agents of all hosts, one each, created when it is first needed, and again when the host's address,
 * its revoked certificates or the own certificate changes. Connections were checked against what was known when they
 * were opened, so they end with it; to a revoked host there is none.
 */
export class AgentPool<Opened> {
  readonly #options: AgentPoolOptions<Opened>
  readonly #entries = new Map<string, Entry<Opened>>()

  constructor(options: AgentPoolOptions<Opened>) {
    this.#options = options
  }

  /** What speaks to a host's agent, by what is known of the host now. Throws `host.revoked`. */
  of(address: AgentAddress): Opened {
    this.review(address.hostId, address)
    if (address.revoked) throw hostRevoked(address.hostName)
    const identity = this.#options.identity()
    const known = this.#entries.get(address.hostId)
    if (known?.identity === identity) return known.opened
    this.#end(address.hostId)
    const entry = this.#open(address, identity)
    this.#entries.set(address.hostId, entry)
    return entry.opened
  }

  /** Hosts whose agents are spoken to: those that review() has to know. */
  hosts(): string[] {
    return [...this.#entries.keys()]
  }

  /** Says what is known of a host now, undefined for one that was removed; what was opened by something else ends. */
  review(hostId: string, address: AgentAddress | undefined): void {
    const entry = this.#entries.get(hostId)
    if (entry && !(address && !address.revoked && sameTrust(entry.address, address))) this.#end(hostId)
  }

  close(): void {
    for (const hostId of this.hosts()) this.#end(hostId)
  }

  #open(address: AgentAddress, identity: string): Entry<Opened> {
    const clients: AgentClient[] = []
    let ended = false
    const opened = this.#options.open((timeoutMs) => {
      const client = createAgentClient({
        url: address.agentUrl,
        hostId: address.hostId,
        authority: this.#options.authority,
        identity,
        // a connection that was begun before the end is not believed after it
        isRevoked: (fingerprint) => ended || address.revokedCertificates.includes(fingerprint),
        timeoutMs,
      })
      clients.push(client)
      return client.trpc
    })
    const end = () => {
      ended = true
      for (const client of clients) void client.close()
    }
    return { opened, address, identity, end }
  }

  #end(hostId: string): void {
    this.#entries.get(hostId)?.end()
    this.#entries.delete(hostId)
  }
}

const sameTrust = (a: AgentAddress, b: AgentAddress) =>
  a.agentUrl === b.agentUrl && a.revokedCertificates.join() === b.revokedCertificates.join()
