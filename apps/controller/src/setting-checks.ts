import { type TaskInput, type TaskKey, type TaskStatus, TriedSettings } from '@floe/agent-contract'
import { agentFault } from '@floe/agent-contract/client'
import {
  answerSettingCheck,
  keepSettingCheck,
  pruneSettingChecks,
  type SettingCheckAnswer,
  type SettingCheckTarget,
  takeSettingChecks,
} from '@floe/db'
import { type Fault, fault, InstanceId, toFault } from '@floe/domain'
import { pause, runLoop, type Wake } from './loop'
import type { ControllerParts } from './parts'

/** Looked for at least this often, also when no notification came. */
const EVERY_MS = 2_000
const AT_ONCE = 16
/** A controller that was killed is followed by another after this. */
const LEASE_MS = 10_000
const RENEW_MS = 3_000
/** A check takes some hundred ms, and somebody is waiting. */
const POLL_MS = 40
/** A check of all its targets: longer than an agent itself tries a start, and waits for its turn. */
const DEADLINE_MS = 120_000
const PRUNE_EVERY_MS = 600_000

type Parts = Pick<ControllerParts, 'db' | 'agents' | 'log' | 'database'> & {
  wake: Wake
  /** How long a check may take, in ms; for tests. */
  deadlineMs?: number | undefined
}

/** Carries out what web asks about settings: a task on each target's host, and the answer into the row. */
export async function carryOutSettingChecks(parts: Parts, signal: AbortSignal): Promise<void> {
  const { db, log, database, wake } = parts
  const running = new Set<Promise<void>>()
  let prunedAt = 0
  await runLoop({ name: 'check settings', everyMs: EVERY_MS, signal, log, database, wake }, async () => {
    if (Date.now() - prunedAt >= PRUNE_EVERY_MS) {
      await pruneSettingChecks(db.pool)
      prunedAt = Date.now()
    }
    const limit = AT_ONCE - running.size
    if (limit <= 0) return
    for (const check of await takeSettingChecks(db.pool, { leaseMs: LEASE_MS, limit })) {
      const run = carryOut(check, parts, signal)
        .catch((error: unknown) => database.missed(error))
        .finally(() => {
          running.delete(run)
          if (running.size === AT_ONCE - 1) wake.now()
        })
      running.add(run)
    }
  })
  await Promise.all(running)
}

async function carryOut(
  { checkId, targets }: { checkId: string; targets: SettingCheckTarget[] },
  { db, agents, log, deadlineMs = DEADLINE_MS }: Parts,
  signal: AbortSignal,
): Promise<void> {
  const begun = Date.now()
  const deadline = { ms: deadlineMs, at: performance.now() + deadlineMs }
  // what is kept for the others is also seen to end: an answer, or the end of this controller
  const over = new AbortController()
  const renewing = renew(() => keepSettingCheck(db.pool, checkId, LEASE_MS), over.signal)
  try {
    // a host tries one start at a time: its members are asked one after the other
    const turns = new Map<string, Promise<unknown>>()
    const answers = await Promise.all(
      targets.map((target, i) => {
        const key = { operationId: checkId, step: `check-${i + 1}`, attempt: 1 }
        const before = turns.get(target.hostId)
        const own = (async () => {
          await before
          return askAgent(agents, target, key, deadline, signal)
        })()
        turns.set(target.hostId, own)
        return own
      }),
    )
    if (signal.aborted) return await keepSettingCheck(db.pool, checkId, 0)
    await answerSettingCheck(db.pool, checkId, answers)
    log.info('settings.checked', { checkId, ms: Date.now() - begun, targets: targets.length })
  } finally {
    over.abort()
    await renewing
  }
}

async function renew(keep: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(RENEW_MS, signal)
    if (!signal.aborted) await keep().catch(() => {})
  }
}

/** Starts the task, again and again under one key, and waits for its end or the deadline, which ends it. Never throws. */
async function askAgent(
  agents: Parts['agents'],
  { instanceId, hostId, changes, acrossCluster }: SettingCheckTarget,
  key: TaskKey,
  deadline: { ms: number; at: number },
  signal: AbortSignal,
): Promise<SettingCheckAnswer> {
  const task: TaskInput = instanceId
    ? { kind: 'try-settings', instanceId: InstanceId.parse(instanceId), changes, acrossCluster }
    : { kind: 'try-new-settings', instanceId: InstanceId.parse(key.operationId), changes }
  let started = false
  let refused = 0
  while (!signal.aborted && performance.now() < deadline.at) {
    try {
      const { tasks } = agents.of(hostId)
      const status: TaskStatus = started
        ? await tasks.checkTask({ key, afterLogSeq: 0 })
        : await tasks.startTask({ key, task })
      // an agent whose state was lost knows nothing of it any more
      started = status.state !== 'not-started'
      refused = 0
      if (status.state === 'succeeded')
        return { fault: null, results: TriedSettings.parse(status.result).results }
      if (status.fault) return { fault: status.fault, results: [] }
      await pause(POLL_MS, signal)
    } catch (error) {
      const reason = reasonOf(error)
      if (reason.code !== 'agent.unreachable' || ++refused > 2) return { fault: reason, results: [] }
      await pause(POLL_MS, signal)
    }
  }
  // nobody hears its answer: the host's next check need not wait for it
  if (started && !signal.aborted)
    await agents
      .of(hostId)
      .tasks.cancelTask(key)
      .catch(() => {})
  const late = fault('setting.check_too_slow', 'the check of the settings took too long', {
    detail: `It had not ended after ${deadline.ms / 1_000} s.`,
    hint: 'Look whether the host is overloaded, and try again.',
  })
  return { fault: late.fault, results: [] }
}

function reasonOf(error: unknown): Fault {
  const reason = error instanceof Error && 'fault' in error ? toFault(error) : agentFault(error)
  if (reason.code !== 'agent.bad_request') return reason
  return {
    code: 'agent.too_old',
    message: 'the agent is too old to check settings',
    detail: 'It does not know the task that this version of the console asks for.',
    hint: 'Run "git pull" and "./floe up" on its host; on a host of another console, "./floe agent start".',
  }
}
