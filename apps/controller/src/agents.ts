import { type AgentClient, createAgentClient } from '@floe/agent-contract'
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

type Entry = HostAgent & { url: string; close(): void }

/** The agents of all hosts, one pair of clients each, made when first needed and made anew when the address changes. */
export class Agents {
  readonly #keys: { ca: string; key: string }
  readonly #entries = new Map<string, Entry>()
  readonly #urls = new Map<string, string>()

  constructor(keys: { ca: string; key: string }) {
    this.#keys = keys
  }

  /** Says where a host's agent answers. */
  place(hostId: string, url: string): void {
    this.#urls.set(hostId, url)
  }

  /** The agent of a host that was placed. */
  of(hostId: string): HostAgent {
    const url = this.#urls.get(hostId)
    if (!url) throw new Error(`host ${hostId} has no address`)
    const known = this.#entries.get(hostId)
    if (known?.url === url) return known
    known?.close()
    const quick = createAgentClient({ url, ...this.#keys, timeoutMs: 3_000 })
    const report = createAgentClient({ url, ...this.#keys, timeoutMs: REPORT_WAIT_MS + 3_000 })
    const entry: Entry = {
      url,
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
    for (const entry of this.#entries.values()) entry.close()
    this.#entries.clear()
  }
}
