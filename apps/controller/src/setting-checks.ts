import { type TaskInput, type TaskKey, TriedSettings } from '@floe/agent-contract'
import {
  answerSettingCheck,
  keepSettingCheck,
  pruneSettingChecks,
  type SettingCheckAnswer,
  type SettingCheckTarget,
  takeSettingChecks,
} from '@floe/db'
import { fault, InstanceId } from '@floe/domain'
import { askTask, type Deadline, keepWhile } from './ask-task'
import { carryOutWhatIsTaken } from './carry-out'
import type { Wake } from './loop'
import type { ControllerParts } from './parts'

/** Looked for at least this often, also when no notification came. */
const EVERY_MS = 2_000
/** A controller that was killed is followed by another after this. */
const LEASE_MS = 10_000
/** A check of all its targets: longer than an agent itself tries a start, and waits for its turn. */
const DEADLINE_MS = 120_000
const PRUNE_EVERY_MS = 600_000

type Parts = Pick<ControllerParts, 'db' | 'agents' | 'log' | 'database'> & {
  wake: Wake
  /** How long a check may take, in ms; for tests. */
  deadlineMs?: number | undefined
}

/** Carries out what web asks about settings: a task on each target's host, and the answer into the row. */
export function carryOutSettingChecks(parts: Parts, signal: AbortSignal): Promise<void> {
  const { db, log, database, wake } = parts
  let prunedAt = 0
  return carryOutWhatIsTaken(
    { name: 'check settings', everyMs: EVERY_MS, signal, log, database, wake },
    async (limit) => {
      if (Date.now() - prunedAt >= PRUNE_EVERY_MS) {
        await pruneSettingChecks(db.pool)
        prunedAt = Date.now()
      }
      return takeSettingChecks(db.pool, { leaseMs: LEASE_MS, limit })
    },
    (check) => carryOut(check, parts, signal),
  )
}

async function carryOut(
  { checkId, targets }: { checkId: string; targets: SettingCheckTarget[] },
  { db, agents, log, deadlineMs = DEADLINE_MS }: Parts,
  signal: AbortSignal,
): Promise<void> {
  const begun = Date.now()
  const deadline = { ms: deadlineMs, at: performance.now() + deadlineMs }
  await keepWhile(
    () => keepSettingCheck(db.pool, checkId, LEASE_MS),
    async () => {
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
    },
  )
}

const asked = ({ instanceId, changes, acrossCluster }: SettingCheckTarget, key: TaskKey): TaskInput =>
  instanceId
    ? { kind: 'try-settings', instanceId: InstanceId.parse(instanceId), changes, acrossCluster }
    : { kind: 'try-new-settings', instanceId: InstanceId.parse(key.operationId), changes }

async function askAgent(
  agents: Parts['agents'],
  target: SettingCheckTarget,
  key: TaskKey,
  deadline: Deadline,
  signal: AbortSignal,
): Promise<SettingCheckAnswer> {
  const asking = { agents, hostId: target.hostId, key, task: asked(target, key), deadline, tooOld }
  const { fault: reason, result } = await askTask(asking, signal)
  if (reason === null) return { fault: null, results: TriedSettings.parse(result).results }
  if (reason !== 'late') return { fault: reason, results: [] }
  const late = fault('setting.check_too_slow', 'the check of the settings took too long', {
    detail: `It had not ended after ${deadline.ms / 1_000} s.`,
    hint: 'Look whether the host is overloaded, and try again.',
  })
  return { fault: late.fault, results: [] }
}

const tooOld = 'the agent is too old to check settings'
