import { type AgentClient, agentFault, createAgentClient } from '@floe/agent-contract'
import { FaultError, fault, type InstanceId } from '@floe/domain'
import type { FeedSource } from './live/instance-feed'

export type AgentAddress = { agentUrl: string }

/** How long it is believed that an instance lives on the host it was last found on. */
const ADDRESS_KEPT_MS = 30_000

/** Clients of all agents with the key that may only read, one a host. */
export class Agents {
  readonly #clients = new Map<string, AgentClient>()
  readonly #addresses = new Map<InstanceId, { at: number; address: AgentAddress }>()
  readonly #options: {
    ca: string
    key: string
    find(instanceId: InstanceId): Promise<AgentAddress | undefined>
  }

  constructor(options: {
    ca: string
    key: string
    /** Where an instance lives; undefined when there is no such instance. */
    find(instanceId: InstanceId): Promise<AgentAddress | undefined>
  }) {
    this.#options = options
  }

  /** The client of an instance's agent. Throws `instance.not_found`. */
  async of(instanceId: InstanceId): Promise<AgentClient> {
    const known = this.#addresses.get(instanceId)
    if (known && Date.now() - known.at < ADDRESS_KEPT_MS) return this.#client(known.address.agentUrl)
    const address = await this.#options.find(instanceId)
    if (!address) throw fault('instance.not_found', `instance "${instanceId}" does not exist`)
    this.#addresses.set(instanceId, { at: Date.now(), address })
    return this.#client(address.agentUrl)
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
    for (const client of this.#clients.values()) client.close()
    this.#clients.clear()
  }

  #client(url: string): AgentClient {
    let client = this.#clients.get(url)
    if (!client) {
      client = createAgentClient({ url, ca: this.#options.ca, key: this.#options.key })
      this.#clients.set(url, client)
    }
    return client
  }
}
