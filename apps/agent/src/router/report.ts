import { randomUUID } from 'node:crypto'
import type { AgentProblem, Report } from '@floe/agent-contract'
import type { HostFacts } from '@floe/domain'
import type { Instance } from '../engine/instance'

/**
 * The agent's numbered account of host and instances. The number grows with every change worth telling, so that a
 * reader can wait for news; it starts from zero with every start of the agent, which `bootId` shows.
 */
export class Reports {
  readonly bootId = randomUUID()
  #seq = 1
  readonly #waiting = new Set<() => void>()
  readonly #facts: () => HostFacts
  readonly #instances: () => Instance[]
  readonly #problems: () => AgentProblem[]

  constructor(facts: () => HostFacts, instances: () => Instance[], problems: () => AgentProblem[]) {
    this.#facts = facts
    this.#instances = instances
    this.#problems = problems
  }

  changed(): void {
    this.#seq++
    for (const wake of [...this.#waiting]) wake()
  }

  /** The report as it is once it is newer than `after`, or after `waitMs`. */
  async read(
    after: { bootId: string; seq: number } | null,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<Report> {
    if (after && after.bootId === this.bootId && after.seq >= this.#seq && waitMs > 0)
      await this.#news(waitMs, signal)
    const seq = this.#seq
    return {
      bootId: this.bootId,
      seq,
      at: Date.now(),
      facts: this.#facts(),
      instances: await Promise.all(this.#instances().map((i) => i.observed())),
      problems: this.#problems(),
    }
  }

  #news(waitMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, waitMs)
      signal?.addEventListener('abort', done, { once: true })
      this.#waiting.add(done)
    })
  }
}
