import { AgentPool } from '@floe/agent-contract/agent-pool'
import type { AgentClient } from '@floe/agent-contract/client'
import type { AgentAddress } from '@floe/domain'
import { type AgentTasks, PATIENCE } from '@floe/operations'

/** A long-polled report answers within this and the deadline of its call is longer. */
export const REPORT_WAIT_MS = 1_000

export type HostAgent = {
  /** For questions that are answered at once. */
  quick: AgentClient['trpc']
  /** For the long-polled report alone: calls of one client share requests, and none may wait for it. */
  report: AgentClient['trpc']
  tasks: AgentTasks
}

/** What the controller shows agents, and by what it knows them. `identity` is asked before every use: it is renewed in place. */
export type Credentials = { authority: string; identity: () => string }

/** The agents of all hosts that the controller was informed of, with the certificate that may start tasks. */
export class Agents {
  readonly #pool: AgentPool<HostAgent>
  #addresses = new Map<string, AgentAddress>()

  /** @param questionMs how long an answer may take. */
  constructor(credentials: Credentials, questionMs = PATIENCE.questionMs) {
    this.#pool = new AgentPool({ ...credentials, open: (connect) => open(connect, questionMs) })
  }

  /** Says where the agents answer and which are not believed; what is not named is forgotten, with its connections. */
  place(addresses: readonly AgentAddress[]): void {
    this.#addresses = new Map(addresses.map((address) => [address.hostId, address]))
    for (const hostId of this.#pool.hosts()) this.#pool.review(hostId, this.#addresses.get(hostId))
  }

  /** The agent of a host that was placed. Throws `host.revoked`. */
  of(hostId: string): HostAgent {
    const address = this.#addresses.get(hostId)
    if (!address) throw new Error(`host ${hostId} has no address`)
    return this.#pool.of(address)
  }

  close(): void {
    this.#pool.close()
  }
}

function open(connect: (timeoutMs: number) => AgentClient['trpc'], questionMs: number): HostAgent {
  const quick = connect(questionMs)
  return {
    quick,
    report: connect(REPORT_WAIT_MS + questionMs),
    tasks: {
      startTask: (input) => quick.task.start.mutate(input),
      checkTask: (input) => quick.task.check.query(input),
      cancelTask: (key) => quick.task.cancel.mutate(key),
    },
  }
}
