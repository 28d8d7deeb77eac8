import { AgentPool } from '@floe/agent-contract/agent-pool'
import { type AgentQuestions, agentFault } from '@floe/agent-contract/client'
import { hostNotFound } from '@floe/db'
import { type AgentAddress, FaultError, fault, type HostId, type InstanceId } from '@floe/domain'
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
  /** Called once, before the first agent is spoken to: from then on hostChanged() has to be called at changes. */
  onFirst?(): void
}

/** The agents of all hosts by the instances that live on them, with the certificate that may only read. */
export class Agents {
  readonly #pool: AgentPool<AgentQuestions>
  readonly #addresses = new Map<InstanceId, { at: number; address: AgentAddress }>()
  readonly #options: AgentsOptions
  #first = true

  constructor(options: AgentsOptions) {
    this.#options = options
    const { authority, identity } = options
    this.#pool = new AgentPool({ authority, identity, open: (connect) => connect() })
  }

  /** What an instance's agent may be asked. Throws `instance.not_found` or `host.revoked`. */
  async of(instanceId: InstanceId): Promise<AgentQuestions> {
    const known = this.#addresses.get(instanceId)
    if (known && Date.now() - known.at < ADDRESS_KEPT_MS) return this.#at(known.address)
    const address = await this.#options.find(instanceId)
    if (!address) throw fault('instance.not_found', `instance "${instanceId}" does not exist`)
    this.#addresses.set(instanceId, { at: Date.now(), address })
    return this.#at(address)
  }

  /**
   * Something about a host (null: any) changed: what is known of it is read again, and a connection to one that is not
   * to be believed any more ends.
   */
  async hostChanged(hostId: string | null): Promise<void> {
    for (const [instanceId, { address }] of this.#addresses)
      if (hostId === null || address.hostId === hostId) this.#addresses.delete(instanceId)
    await Promise.all(
      this.#pool
        .hosts()
        .filter((id) => hostId === null || id === hostId)
        .map(async (id) => this.#pool.review(id, await this.#options.findHost(id))),
    )
  }

  /**
   * A probe: asks an instance's agent something that changes nothing, within 3 s. Throws the agent's own fault, or
   * `agent.unreachable`.
   */
  async probe<T>(instanceId: InstanceId, ask: (trpc: AgentQuestions) => Promise<T>): Promise<T> {
    const trpc = await this.of(instanceId)
    try {
      return await ask(trpc)
    } catch (error) {
      throw new FaultError(agentFault(error), error)
    }
  }

  /** The same of a host's agent, about what no instance of the console is concerned with. */
  async probeHost<T>(hostId: HostId, ask: (trpc: AgentQuestions) => Promise<T>): Promise<T> {
    const address = await this.#options.findHost(hostId)
    if (!address) throw hostNotFound(hostId)
    try {
      return await ask(this.#at(address))
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
          .then((trpc) => {
            if (closed) return
            subscription = trpc.telemetry.stream.subscribe(
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
    this.#pool.close()
  }

  #at(address: AgentAddress): AgentQuestions {
    if (this.#first && !address.revoked) {
      this.#first = false
      this.#options.onFirst?.()
    }
    return this.#pool.of(address)
  }
}
