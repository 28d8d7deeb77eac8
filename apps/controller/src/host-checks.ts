import { askDueHostChecks, endHostCheck, inTransaction, keepHostCheck, takeHostChecks } from '@floe/db'
import { type Fault, fault, HOST_CHECK_EVERY_MS, HostCheck, InstanceId, isPlainText } from '@floe/domain'
import { askTask, keepWhile } from './ask-task'
import { carryOutWhatIsTaken } from './carry-out'
import { runLoop, type Wake } from './loop'
import type { ControllerParts } from './parts'

/** Looked for at least this often, also when no notification came. */
const EVERY_MS = 2_000
/** Hosts that are due for a check though nobody asks are looked for this often. */
const DUE_EVERY_MS = 10_000
/** A controller that was killed is followed by another after this. */
const LEASE_MS = 10_000
/** As long as the agent's own bound, and a moment. */
const DEADLINE_MS = 70_000

type Parts = Pick<ControllerParts, 'db' | 'agents' | 'log' | 'database'> & { wake: Wake }

/** The one place that asks for checks of machines that nobody asked for: of a new host, and of each once a day. */
export function askForHostChecks(
  { db, log, database }: Pick<Parts, 'db' | 'log' | 'database'>,
  signal: AbortSignal,
): Promise<void> {
  return runLoop(
    { name: 'ask for checks of hosts', everyMs: DUE_EVERY_MS, signal, log, database },
    async () => {
      const hosts = await askDueHostChecks(db.pool, HOST_CHECK_EVERY_MS)
      if (hosts.length > 0) log.info('host.checks_asked', { hosts })
    },
  )
}

/** Carries out the checks of machines that are asked for: a task on the host, and what it reported into the row. */
export function carryOutHostChecks(parts: Parts, signal: AbortSignal): Promise<void> {
  const { db, log, database, wake } = parts
  return carryOutWhatIsTaken(
    { name: 'check hosts', everyMs: EVERY_MS, signal, log, database, wake },
    (limit) => takeHostChecks(db.pool, { leaseMs: LEASE_MS, limit }),
    (check) => carryOut(check, parts, signal),
  )
}

async function carryOut(
  { checkId, hostId }: { checkId: string; hostId: string },
  { db, agents, log }: Parts,
  signal: AbortSignal,
): Promise<void> {
  const key = { operationId: checkId, step: 'check-host', attempt: 1 }
  const deadline = { ms: DEADLINE_MS, at: performance.now() + DEADLINE_MS }
  const task = { kind: 'check-host' as const, instanceId: InstanceId.parse(checkId) }
  const tooOld = 'the agent is too old to check its machine'
  await keepWhile(
    () => keepHostCheck(db.pool, checkId, LEASE_MS),
    async () => {
      const { fault: reason, result } = await askTask({ agents, hostId, key, task, deadline, tooOld }, signal)
      if (signal.aborted) return await keepHostCheck(db.pool, checkId, 0)
      const end = reason === null ? endOf(result) : { fault: reason === 'late' ? late() : reason }
      await inTransaction(db.pool, (tx) => endHostCheck(tx, checkId, end))
      log.info('host.checked', { hostId, checkId, fault: 'fault' in end ? end.fault.code : null })
    },
  )
}

/** An agent is a peer like any other: what it reports is kept only as far as it is what a check reports. */
function endOf(result: unknown): { check: HostCheck } | { fault: Fault } {
  const check = HostCheck.safeParse(result)
  return check.success && isPlainText(check.data)
    ? { check: check.data }
    : {
        fault: fault('host.check_unreadable', 'what the agent reported about its machine could not be read')
          .fault,
      }
}

const late = () =>
  fault('host.check_too_slow', 'the check of the machine took too long', {
    detail: `It had not ended after ${DEADLINE_MS / 1_000} s.`,
    hint: 'Look whether a file system of the host hangs, and check again.',
  }).fault
