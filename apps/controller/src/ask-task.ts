import type { TaskInput, TaskKey, TaskStatus } from '@floe/agent-contract'
import { agentFault } from '@floe/agent-contract/client'
import { type Fault, toFault } from '@floe/domain'
import { pause } from '@floe/host/wait'
import type { ControllerParts } from './parts'

const RENEW_MS = 3_000
/** A check takes some hundred ms, and somebody is waiting. */
const POLL_MS = 40

/** When a check is over: so long after it began, at that moment of the monotonic clock. */
export type Deadline = { ms: number; at: number }

/** Renews what is kept for the others until `work` has ended, with an answer or with this controller. */
export async function keepWhile(keep: () => Promise<void>, work: () => Promise<void>): Promise<void> {
  const over = new AbortController()
  const renewing = (async () => {
    while (!over.signal.aborted) {
      await pause(RENEW_MS, over.signal)
      if (!over.signal.aborted) await keep().catch(() => {})
    }
  })()
  try {
    await work()
  } finally {
    over.abort()
    await renewing
  }
}

/**
 * Starts a task that no operation asked for, again and again under one key, and waits for its end or the deadline, which
 * ends it (`late`). Never throws. `tooOld`: what is said of an agent that does not know the task.
 */
export async function askTask(
  o: {
    agents: ControllerParts['agents']
    hostId: string
    key: TaskKey
    task: TaskInput
    deadline: Deadline
    tooOld: string
  },
  signal: AbortSignal,
): Promise<{ fault: Fault | 'late'; result?: never } | { fault: null; result: unknown }> {
  const { agents, hostId, key, task } = o
  let started = false
  let refused = 0
  while (!signal.aborted && performance.now() < o.deadline.at) {
    try {
      const { tasks } = agents.of(hostId)
      const status: TaskStatus = started
        ? await tasks.checkTask({ key, afterLogSeq: 0 })
        : await tasks.startTask({ key, task })
      // an agent whose state was lost knows nothing of it any more
      started = status.state !== 'not-started'
      refused = 0
      if (status.state === 'succeeded') return { fault: null, result: status.result }
      if (status.fault) return { fault: status.fault }
      await pause(POLL_MS, signal)
    } catch (error) {
      const reason = reasonOf(error, o.tooOld)
      if (reason.code !== 'agent.unreachable' || ++refused > 2) return { fault: reason }
      await pause(POLL_MS, signal)
    }
  }
  // nobody hears its answer: the host's next check need not wait for it
  if (started && !signal.aborted)
    await agents
      .of(hostId)
      .tasks.cancelTask(key)
      .catch(() => {})
  return { fault: 'late' }
}

function reasonOf(error: unknown, tooOld: string): Fault {
  const reason = error instanceof Error && 'fault' in error ? toFault(error) : agentFault(error)
  if (reason.code !== 'agent.bad_request') return reason
  return {
    code: 'agent.too_old',
    message: tooOld,
    detail: 'It does not know the task that this version of the console asks for.',
    hint: 'Run "git pull" and "./floe up" on its host; on a host of another console, "./floe agent start".',
  }
}
