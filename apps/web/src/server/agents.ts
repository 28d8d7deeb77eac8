import { type AgentClient, agentFault, createAgentClient } from '@floe/agent-contract'
import { type AgentAddress, hostNotFound, hostRevoked } from '@floe/db'
import { FaultError, fault, type HostId, type InstanceId } from '@floe/domain'
import type { FeedSource } from './live/instance-feed'

/** How long it is believed that an instance lives on the host it was last found on. */
const ADDRESS_KEPT_MS = 30_000

export type AgentsOptions = {
  /** PEM of the installation's authority. */
  authority: string
  /** Certificate and key of this process, which may only read; asked before every use, since they are renewed. */
  identity(): string
  /** Where an instance lives; undefined when there is no such instance. */
  find(instanceId: InstanceId): Promise<AgentAddress | undefined>
  /** Where a host's agent answers; undefined when it was removed. */
  findHost(hostId: string): Promise<AgentAddress | undefined>
  /** Called once, before the first agent is spoken to: from then on hostChanged() has to be told of changes. */
  onFirst?(): void
}

type Entry = { client: AgentClient; address: AgentAddress; identity: string }

/** Clients of all agents with the certificate that may only read, one a host. A revoked host has none. */
export class Agents {
  readonly #clients = new Map<string, Entry>()
  readonly #addresses = new Map<InstanceId, { at: number; address: AgentAddress }>()
  readonly #options: AgentsOptions
  #first = true

  constructor(options: AgentsOptions) {
    this.#options = options
  }

  /** The client of an instance's agent. Throws `instance.not_found` or `host.revoked`. */
  async of(instanceId: InstanceId): Promise<AgentClient> {
    const known = this.#addresses.get(instanceId)
    if (known && Date.now() - known.at < ADDRESS_KEPT_MS) return this.#client(known.address)
    const address = await this.#options.find(instanceId)
    if (!address) throw fault('instance.not_found', `instance "${instanceId}" does not exist`)
    this.#addresses.set(instanceId, { at: Date.now(), address })
    return this.#client(address)
  }

  /**
   * Something about a host (null: any) changed: what is known of it is read anew, and a connection to one that is not to be
   * believed any more ends.
   */
  async hostChanged(hostId: string | null): Promise<void> {
    for (const [instanceId, { address }] of this.#addresses)
      if (hostId === null || address.hostId === hostId) this.#addresses.delete(instanceId)
    await Promise.all(
      [...this.#clients.keys()]
        .filter((id) => hostId === null || id === hostId)
        .map((id) => this.#review(id)),
    )
  }

  async #review(hostId: string): Promise<void> {
    const entry = this.#clients.get(hostId)
    if (!entry) return
    const address = await this.#options.findHost(hostId)
    if (address && !address.revoked && sameTrust(address, entry.address)) return
    this.#clients.delete(hostId)
    entry.client.close()
  }

  /**
   * A probe: asks an instance's agent something that changes nothing, within 3 s. Throws the agent's own fault, or
   * `agent.unreachable`.
   */
  async probe<T>(instanceId: InstanceId, ask: (trpc: AgentClient['trpc']) => Promise<T>): Promise<T> {
    const client = await this.of(instanceId)
    try {
      return await ask(client.trpc)
    } catch (error) {
      throw new FaultError(agentFault(error), error)
    }
  }

  /** The same of a host's agent, about what no instance of the console is concerned with. */
  async probeHost<T>(hostId: HostId, ask: (trpc: AgentClient['trpc']) => Promise<T>): Promise<T> {
    const address = await this.#options.findHost(hostId)
    if (!address) throw hostNotFound(hostId)
    try {
      return await ask(this.#client(address).trpc)
    } catch (error) {
      throw new FaultError(agentFault(error), error)
    }
  }

  /** An instance's telemetry as a feed reads it. */
  feedSource(instanceId: InstanceId): FeedSource {
    return {
      open: (afterSeq, on) => {
        let closed = false
        let subscription: { unsubscribe(): void } | null = null
        this.of(instanceId)
          .then((client) => {
            if (closed) return
            subscription = client.trpc.telemetry.stream.subscribe(
              { instanceId, lastEventId: afterSeq === null ? null : String(afterSeq) },
              {
                onData: (event) => on.sample(event.data),
                onError: (error) => on.ended(error),
                onComplete: () => on.ended(null),
              },
            )
          })
          .catch((error: unknown) => on.ended(error))
        return {
          close: () => {
            closed = true
            subscription?.unsubscribe()
          },
        }
      },
      read: (afterSeq, limit) =>
        this.probe(instanceId, (trpc) => trpc.telemetry.read.query({ instanceId, afterSeq, limit })),
    }
  }

  close() {
    for (const { client } of this.#clients.values()) client.close()
    this.#clients.clear()
  }

  #client(address: AgentAddress): AgentClient {
    if (address.revoked) throw hostRevoked(address.hostName)
    if (this.#first) {
      this.#first = false
      this.#options.onFirst?.()
    }
    const identity = this.#options.identity()
    const known = this.#clients.get(address.hostId)
    if (known && sameTrust(known.address, address) && known.identity === identity) return known.client
    known?.client.close()
    const client = createAgentClient({
      url: address.agentUrl,
      hostId: address.hostId,
      authority: this.#options.authority,
      identity,
      isRevoked: (fingerprint) => address.revokedCertificates.includes(fingerprint),
    })
    this.#clients.set(address.hostId, { client, address, identity })
    return client
  }
}

const sameTrust = (a: AgentAddress, b: AgentAddress) =>
  a.agentUrl === b.agentUrl && a.revokedCertificates.join() === b.revokedCertificates.join()
