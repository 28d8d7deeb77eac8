import { type InstanceState, whyInstanceMoved } from '@floe/domain'
import type { RegisteredInstance } from '../registry/registered-instance'

/** What is known of an instance at one look. */
export type Evidence = {
  expected: RegisteredInstance['expected']
  /** The task that works on it right now. */
  activity: 'starting' | 'stopping' | null
  alive: boolean
  /** Processes of the engine work although no postmaster is alive. */
  working: boolean
  /** The engine's own word in postmaster.pid. */
  status: string | null
  answersSql: boolean
  /** The last look saw it starting. */
  wasStarting: boolean
  /** The control file says that it was shut down; only looked at when it is not alive. */
  shutDownCleanly: boolean
  /** The machine was restarted since its postmaster was last seen: whatever stopped it, nobody meant it alone. */
  machineRestarted: boolean
}

/**
 * The state an instance is in, from evidence alone. `crashed` needs that nothing works in it though nobody stopped it: a
 * backend that outlives its postmaster may still acknowledge a commit, so until it has ended the instance is stopping.
 */
export function decideState(e: Evidence): InstanceState {
  if (e.expected === 'creating') return 'creating'
  if (e.expected === 'deleting') return 'deleting'
  if (e.alive) {
    if (e.activity === 'stopping' || e.status === 'stopping') return 'stopping'
    return e.answersSql ? 'running' : 'starting'
  }
  if (e.activity === 'starting') return 'starting'
  if (e.working) return 'stopping'
  if (e.expected === 'stopped') return 'stopped'
  if (e.shutDownCleanly && !e.wasStarting && !e.machineRestarted) return 'stopped'
  return 'crashed'
}

/**
 * The states to report on the way from one to the next, with their sentences: an edge that is not in the table is walked
 * over the state between, as it happened too fast to be seen.
 */
export function walk(
  from: InstanceState | null,
  to: InstanceState,
): { state: InstanceState; because: string | null }[] {
  if (from === null) return [{ state: to, because: null }]
  const edge = (a: InstanceState, b: InstanceState) => whyInstanceMoved(a, b)
  const direct = edge(from, to)
  if (direct) return [{ state: to, because: direct }]
  for (const between of ['starting', 'stopping', 'stopped', 'running'] as const) {
    const first = edge(from, between)
    const second = edge(between, to)
    if (first && second)
      return [
        { state: between, because: first },
        { state: to, because: second },
      ]
  }
  return [{ state: to, because: null }]
}
