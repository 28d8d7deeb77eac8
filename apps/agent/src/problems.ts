import type { AgentProblem } from '@floe/agent-contract'
import type { Fault, InstanceId } from '@floe/domain'
import type { Log } from '@floe/host/log'

/**
 * What is wrong with the agent itself, by key: part of the report, so that the console opens an incident. The log says
 * once when a problem begins and once when it is over, however often it is noticed.
 */
export class Problems {
  readonly #log: Log
  readonly #onChange: () => void
  readonly #problems = new Map<string, AgentProblem>()

  constructor(log: Log, onChange: () => void) {
    this.#log = log
    this.#onChange = onChange
  }

  /** It is there; the words of the first time stay. */
  begin(key: string, fault: Fault, instanceId: string | null = null): void {
    if (this.#problems.has(key)) return
    this.#problems.set(key, { key, instanceId: instanceId as InstanceId | null, since: Date.now(), fault })
    this.#log.error('problem.began', { key, instanceId, fault })
    this.#onChange()
  }

  /** It is over. */
  end(key: string): void {
    const problem = this.#problems.get(key)
    if (!problem) return
    this.#problems.delete(key)
    this.#log.info('problem.over', {
      key,
      instanceId: problem.instanceId,
      lastedMs: Date.now() - problem.since,
    })
    this.#onChange()
  }

  list(): AgentProblem[] {
    return [...this.#problems.values()]
  }
}
