import { type AgentClient, createAgentClient } from '@floe/agent-contract'
import { type AgentAddress, hostRevoked } from '@floe/db'
import type { AgentTasks } from '@floe/operations'

/** A long-polled report answers within this and the deadline of its call is longer. */
export const REPORT_WAIT_MS = 1_000

export type HostAgent = {
  /** For questions that are answered at once. */
  quick: AgentClient['trpc']
  /** For the long-polled report alone: calls of one client share requests, and none may wait for it. */
  report: AgentClient['trpc']
  tasks: AgentTasks
}

type Entry = HostAgent & { url: string; identity: string; close(): void }

/** What the controller shows agents, and by what it knows them. `identity` is asked before every use: it is renewed in place. */
export type Credentials = { authority: string; identity: () => string }

/**
 * The agents of all hosts, one pair of clients each, made when first needed and made anew when the address or the
 * controller's own certificate changes. Of a revoked host nothing is asked.
 */
export class Agents {
  readonly #credentials: Credentials
  readonly #entries = new Map<string, Entry>()
  readonly #addresses = new Map<string, AgentAddress>()

  constructor(credentials: Credentials) {
    this.#credentials = credentials
  }

  /** Says where the agents answer and which are not believed; what is not named is forgotten, with its connections. */
  place(addresses: readonly AgentAddress[]): void {
    const named = new Set<string>()
    for (const address of addresses) {
      named.add(address.hostId)
      const before = this.#addresses.get(address.hostId)
      this.#addresses.set(address.hostId, address)
      // connections that are open were checked against what was known then
      if (
        address.revoked ||
        (before && before.revokedCertificates.join() !== address.revokedCertificates.join())
      )
        this.#drop(address.hostId)
    }
    for (const hostId of [...this.#addresses.keys()])
      if (!named.has(hostId)) {
        this.#addresses.delete(hostId)
        this.#drop(hostId)
      }
  }

  /** The agent of a host that was placed. Throws `host.revoked`. */
  of(hostId: string): HostAgent {
    const address = this.#addresses.get(hostId)
    if (!address) throw new Error(`host ${hostId} has no address`)
    if (address.revoked) throw hostRevoked(address.hostName)
    const identity = this.#credentials.identity()
    const known = this.#entries.get(hostId)
    if (known?.url === address.agentUrl && known.identity === identity) return known
    known?.close()
    const endpoint = {
      url: address.agentUrl,
      hostId,
      authority: this.#credentials.authority,
      identity,
      isRevoked: (fingerprint: string) =>
        this.#addresses.get(hostId)?.revokedCertificates.includes(fingerprint) ?? true,
    }
    const quick = createAgentClient({ ...endpoint, timeoutMs: 3_000 })
    const report = createAgentClient({ ...endpoint, timeoutMs: REPORT_WAIT_MS + 3_000 })
    const entry: Entry = {
      url: address.agentUrl,
      identity,
      quick: quick.trpc,
      report: report.trpc,
      tasks: {
        startTask: (input) => quick.trpc.task.start.mutate(input),
        checkTask: (input) => quick.trpc.task.check.query(input),
        cancelTask: (key) => quick.trpc.task.cancel.mutate(key),
      },
      close: () => {
        void quick.close()
        void report.close()
      },
    }
    this.#entries.set(hostId, entry)
    return entry
  }

  close(): void {
    for (const hostId of [...this.#entries.keys()]) this.#drop(hostId)
  }

  #drop(hostId: string): void {
    this.#entries.get(hostId)?.close()
    this.#entries.delete(hostId)
  }
}
