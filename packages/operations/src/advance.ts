import {
  appendOperationLog,
  cancelPendingSteps,
  changeHoldings,
  closeIncidents,
  closeIncidentsOfInstance,
  type Database,
  insertSettingChanges,
  insertSettingRevision,
  insertSteps,
  isDatabaseAway,
  type LeasedOperation,
  type LeasedStep,
  LeaseLostError,
  markInstanceDeleted,
  markInstanceLeft,
  moveClusterPrimary,
  moveToOwnCluster,
  type OperationHold,
  openIncident,
  type PlannedStepRow,
  readClusterOf,
  readEndedSteps,
  readLeasedOperation,
  readObservation,
  recordLimits,
  setClusterAutomatic,
  setClusterPageRepair,
  setClusterSynchronous,
  setMemberRole,
  type Transaction,
  updateOperation,
  updateStep,
  withOperationHold,
} from '@floe/db'
import {
  canMoveOperation,
  endedOperationStates,
  type Fault,
  FaultError,
  fault,
  type InstanceState,
  incident,
  incidentKey,
  type OperationInput,
  type OperationKind,
  type OperationState,
  operationRecord,
  operationTransitions,
  type StepWork,
  toFault,
  withPromotionBegun,
  withPromotionPassed,
  withPromotionSettled,
  withRule,
  withWeaker,
} from '@floe/domain'
import { operationDefinition } from './definitions'
import { PATIENCE, type Patience } from './patience'
import { type AgentTasks, fail, type StepContext, type StepOutcome, type StepRecord } from './step'
import { cancelledFault } from './task-step'
import { undoSteps } from './undo'

export type AdvancePorts = {
  pool: Database['pool']
  /** The agent of a host; its calls carry their own deadline. */
  agentOf(hostId: string): AgentTasks
  now(): Date
  /** Since when this controller has been at work without a standstill; left out where what is stored of hosts is known to be fresh. */
  atWorkSince?: Date
  /** How long what may not come is waited for; the product's when left out. */
  patience?: Patience
  /** One event a line; never a secret. */
  log(event: string, fields: Record<string, unknown>): void
}

/** What became of one pass: the operation ended, or it is worth another pass after `pauseMs`. */
export type Advanced = { ended: OperationState } | { ended: null; pauseMs: number }

/**
 * Moves an operation on by one pass over its current step. Everything a pass decides is written in one transaction that
 * only the newest lease may make; a controller that dies between two of them, or between an agent's answer and the next
 * one, leaves work that another takes up by the same task key. Throws LeaseLostError when the lease is gone.
 */
export async function advanceOperation(hold: OperationHold, ports: AdvancePorts): Promise<Advanced> {
  const operation = await readLeasedOperation(ports.pool, hold)
  if (endedOperationStates.includes(operation.state)) return { ended: operation.state }
  if (operation.state === 'queued') return begin(hold, operation, ports)

  const step = operation.steps.find((s) => s.state !== 'succeeded')
  const cancelling = operation.state === 'cancelling'
  if (!step) return settle(hold, operation, ports, 'succeeded')
  if (step.state === 'pending' && cancelling && !isPastNoReturn(operation)) {
    // as of the last step that was begun: of the one that was not there is nothing to undo, or to spare
    const last = operation.steps.findLast((s) => s.state !== 'pending') ?? step
    const why = cancelledFault('It had not been started.')
    const undone = await undo(hold, operation, last, ports, why)
    if (undone.word === 'wait') return { ended: null, pauseMs: undone.pollMs }
    if (undone.word !== 'fail') return settle(hold, operation, ports, 'cancelled')
    const { fault, records } = undone
    // reported only where something stands there still
    const left = fault.detail === why.detail ? null : faultLine(fault)
    return settle(hold, operation, ports, 'cancelled', { records, left })
  }

  const started = step.state === 'running' ? step : await startStep(hold, operation, step, ports)
  if (!started) return { ended: null, pauseMs: 0 }
  const outcome = await runBody(hold, operation, started, ports)
  return apply(hold, operation, started, outcome, ports)
}

/** queued → running: plans the steps and writes them. */
async function begin(
  hold: OperationHold,
  operation: LeasedOperation,
  ports: AdvancePorts,
): Promise<Advanced> {
  let steps: PlannedStepRow[] = []
  let broken: Fault | null = null
  try {
    steps = await planSteps(operation, ports)
  } catch (error) {
    if (isDatabaseAway(error)) throw error
    broken = toFault(error)
  }
  await withOperationHold(ports.pool, hold, async (tx, state) => {
    if (state !== 'queued') return
    await insertSteps(tx, operation.operationId, steps)
    await move(tx, operation, state, 'running', ports, { startedAt: ports.now(), progress: 0 })
    if (broken) await move(tx, operation, 'running', 'failed', ports, { endedAt: ports.now(), fault: broken })
  })
  return { ended: null, pauseMs: 0 }
}

/** The steps of an operation; of one that takes up another, what succeeded there is not run again. */
async function planSteps(operation: LeasedOperation, ports: AdvancePorts): Promise<PlannedStepRow[]> {
  const input = operationRecord(operation.kind).input.parse(operation.input) as OperationInput<OperationKind>
  const planned = operationDefinition(operation.kind).plan(input, {
    state: operation.observedState as InstanceState | null,
  })
  const afresh = operationDefinition(operation.kind).retryAfresh === true
  const earlier = operation.retryOf && !afresh ? await readEndedSteps(ports.pool, operation.retryOf) : []
  return planned.map(({ name, title }) => {
    const before = earlier.find((s) => s.name === name)
    const succeeded = before?.state === 'succeeded'
    return {
      name,
      title,
      state: succeeded ? 'succeeded' : 'pending',
      attempt: before ? before.attempt + (succeeded ? 0 : 1) : 1,
      result: succeeded ? before.result : null,
    }
  })
}

async function startStep(
  hold: OperationHold,
  operation: LeasedOperation,
  step: LeasedStep,
  ports: AdvancePorts,
): Promise<(LeasedStep & { startedAt: Date }) | null> {
  const startedAt = ports.now()
  const body = operationDefinition(operation.kind).steps[step.name as never] as
    | { deadlineMs: number }
    | undefined
  const deadlineAt = new Date(startedAt.getTime() + (body?.deadlineMs ?? 60_000))
  const done = await withOperationHold(ports.pool, hold, async (tx, state) => {
    // a cancel that came first is seen by the next pass, before anything is started
    if (state !== 'running' && !isPastNoReturn(operation)) return false
    await updateStep(tx, operation.operationId, step.position, { state: 'running', startedAt, deadlineAt })
    await updateOperation(tx, operation.operationId, { message: step.title })
    await appendOperationLog(tx, operation.operationId, [{ step: step.name, text: step.title }])
    return true
  })
  ports.log('step.started', ids(operation, step))
  return done ? { ...step, state: 'running', startedAt, deadlineAt } : null
}

async function runBody(
  hold: OperationHold,
  operation: LeasedOperation,
  step: LeasedStep,
  ports: AdvancePorts,
): Promise<StepOutcome> {
  try {
    const body = operationDefinition(operation.kind).steps[step.name as never] as
      | { run(context: StepContext): Promise<StepOutcome> }
      | undefined
    if (!body)
      return {
        word: 'fail',
        fault: { code: 'operation.unknown_step', message: `no step "${step.name}" in "${operation.kind}"` },
      }
    const outcome = await body.run(contextOf(hold, operation, step, ports))
    return outcome.word === 'fail'
      ? await undo(hold, operation, step, ports, outcome.fault, outcome)
      : outcome
  } catch (error) {
    // a database that is away says nothing about the step: it runs again when the database is back
    if (isDatabaseAway(error) || error instanceof LeaseLostError) throw error
    if (!(error instanceof FaultError))
      ports.log('step.broke', {
        ...ids(operation, step),
        reason: error instanceof Error ? error.stack : String(error),
      })
    return undo(hold, operation, step, ports, toFault(error))
  }
}

function contextOf(
  hold: OperationHold,
  operation: LeasedOperation,
  step: LeasedStep,
  ports: AdvancePorts,
): StepContext {
  return {
    operationId: operation.operationId,
    input: operationRecord(operation.kind).input.parse(operation.input) as OperationInput<OperationKind>,
    hostName: operation.hostName,
    step: {
      name: step.name,
      attempt: step.attempt,
      startedAt: step.startedAt ?? ports.now(),
      taskLogSeq: step.taskLogSeq,
      doneBytes: step.doneBytes,
    },
    results: Object.fromEntries(operation.steps.map((s) => [s.name, s.result ?? {}])),
    cancelAskedAt: cancelAskedAt(operation, step, ports),
    now: ports.now(),
    atWorkSince: ports.atWorkSince ?? new Date(0),
    patience: ports.patience ?? PATIENCE,
    // asked for when it is used: of a revoked host there is none, and what was begun elsewhere is undone all the same
    get agent() {
      return ports.agentOf(operation.hostId)
    },
    readObservation: () => readObservation(ports.pool, operation.instanceId),
    agentOf: (hostId) => ports.agentOf(hostId),
    readCluster: async () => {
      const cluster = await readClusterOf(ports.pool, operation.instanceId)
      if (!cluster)
        throw fault('instance.no_cluster', `instance "${operation.instanceName}" is in no cluster`)
      return cluster
    },
    record: (records) =>
      withOperationHold(ports.pool, hold, async (tx) => {
        for (const record of records) await write(tx, operation, record)
      }),
  }
}

/** The step from which on there is no way back has begun. */
function isPastNoReturn(operation: LeasedOperation): boolean {
  const name = operationRecord(operation.kind).pointOfNoReturn
  return operation.steps.some((s) => s.name === name && s.state !== 'pending')
}

/** A cancel that came at the very moment of no return is not heard, unless a step has become overdue meanwhile. */
function cancelAskedAt(operation: LeasedOperation, step: LeasedStep, ports: AdvancePorts): Date | null {
  if (operation.state !== 'cancelling') return null
  const overdue = step.deadlineAt !== null && ports.now() > step.deadlineAt
  return isPastNoReturn(operation) && !overdue ? null : (operation.cancelAskedAt ?? ports.now())
}

/** Undoes what was begun before an operation ends in `why`; waits for that, and says what could not be undone. */
async function undo(
  hold: OperationHold,
  operation: LeasedOperation,
  step: LeasedStep,
  ports: AdvancePorts,
  why: Fault,
  outcome: StepOutcome = fail(why),
): Promise<StepOutcome> {
  const definition = operationDefinition(operation.kind)
  if (!definition.undo) return outcome
  // a step that began and failed in this very pass was read as pending
  const running = step.state === 'running' ? step.name : null
  const begun = operation.steps.filter((s) => s.state !== 'pending' || s.name === running).map((s) => s.name)
  return undoSteps(definition, contextOf(hold, operation, step, ports), begun, why, outcome)
}

async function apply(
  hold: OperationHold,
  operation: LeasedOperation,
  step: LeasedStep,
  outcome: StepOutcome,
  ports: AdvancePorts,
): Promise<Advanced> {
  const now = ports.now()
  const overdue = outcome.word === 'wait' && step.deadlineAt !== null && now > step.deadlineAt
  const openOverdue = async (tx: Transaction) => {
    const opened = await openIncident(tx, overdueIncident(operation, step))
    if (opened) ports.log('incident.opened', { ...ids(operation, step), key: stepKey(operation, step) })
  }
  if (outcome.word === 'wait' && !hasNews(step, outcome)) {
    if (!overdue) return { ended: null, pauseMs: outcome.pollMs }
    await withOperationHold(ports.pool, hold, openOverdue)
    return { ended: null, pauseMs: Math.max(outcome.pollMs, 1_000) }
  }
  return withOperationHold(ports.pool, hold, async (tx, state): Promise<Advanced> => {
    if (endedOperationStates.includes(state)) return { ended: state }
    const { operationId } = operation
    const lines = (outcome.log ?? []).map((line) => ({ ...line, step: step.name }))
    await appendOperationLog(tx, operationId, lines)
    const taskLogSeq = outcome.taskLogSeq ?? step.taskLogSeq

    if (outcome.word === 'wait') {
      const { progress, message, attempt } = outcome
      await updateStep(tx, operationId, step.position, {
        progress,
        message,
        // each attempt's task has a log of its own
        ...(attempt ? { attempt, taskLogSeq: 0 } : { taskLogSeq }),
        ...workOf(outcome),
      })
      await updateOperation(tx, operationId, {
        message: message ?? step.title,
        progress: overall(operation, progress ?? 0),
      })
      // a step that reports news in every pass is overdue all the same
      if (overdue) await openOverdue(tx)
      return { ended: null, pauseMs: outcome.pollMs }
    }

    const closed = await closeIncidents(tx, [stepKey(operation, step)], `Step "${step.title}" has ended.`)
    for (const key of closed) ports.log('incident.closed', { ...ids(operation, step), key })
    if (outcome.word === 'fail') {
      const givenUp = state === 'cancelling' && outcome.fault.code === 'task.cancelled'
      const to = givenUp ? 'cancelled' : 'failed'
      const fault = givenUp ? null : outcome.fault
      for (const record of outcome.records ?? []) await write(tx, operation, record)
      await updateStep(tx, operationId, step.position, {
        state: to,
        endedAt: now,
        remainingMs: null,
        fault: outcome.fault,
        taskLogSeq,
      })
      if (!givenUp)
        await appendOperationLog(tx, operationId, [{ step: step.name, text: faultLine(outcome.fault) }])
      await cancelPendingSteps(tx, operationId)
      await move(tx, operation, state, to, ports, { endedAt: now, fault, message: outcome.fault.message })
      return { ended: to }
    }

    await updateStep(tx, operationId, step.position, {
      state: 'succeeded',
      endedAt: now,
      progress: 1,
      message: null,
      remainingMs: null,
      result: outcome.result,
      taskLogSeq,
    })
    for (const record of outcome.records) await write(tx, operation, record)
    ports.log('step.succeeded', ids(operation, step))
    const last = operation.steps.at(-1)?.position === step.position
    if (last || outcome.word === 'done') {
      const results = operation.steps.map((s) =>
        s.position === step.position ? outcome.result : (s.result ?? {}),
      )
      await cancelPendingSteps(tx, operationId)
      await move(tx, operation, state, 'succeeded', ports, {
        endedAt: now,
        progress: 1,
        message: null,
        result: Object.assign({}, ...results),
      })
      return { ended: 'succeeded' }
    }
    await updateOperation(tx, operationId, { progress: overall(operation, 1) })
    return { ended: null, pauseMs: 0 }
  })
}

/** Ends an operation that has no step left to run. */
async function settle(
  hold: OperationHold,
  operation: LeasedOperation,
  ports: AdvancePorts,
  to: 'succeeded' | 'cancelled',
  { records = [], left = null }: { records?: readonly StepRecord[] | undefined; left?: string | null } = {},
): Promise<Advanced> {
  return withOperationHold(ports.pool, hold, async (tx, state): Promise<Advanced> => {
    if (endedOperationStates.includes(state)) return { ended: state }
    for (const record of records) await write(tx, operation, record)
    if (left !== null) await appendOperationLog(tx, operation.operationId, [{ step: null, text: left }])
    await cancelPendingSteps(tx, operation.operationId)
    await move(tx, operation, state, to, ports, { endedAt: ports.now(), message: left })
    return { ended: to }
  })
}

/** The one place where an operation's state changes: along an edge of the table, whose sentence is the log line. */
async function move(
  tx: Transaction,
  operation: LeasedOperation,
  from: OperationState,
  to: OperationState,
  ports: AdvancePorts,
  change: Parameters<typeof updateOperation>[2],
): Promise<void> {
  if (!canMoveOperation(from, to)) throw new Error(`no transition from "${from}" to "${to}"`)
  const because = operationTransitions.find((t) => t.from === from && t.to === to)?.because ?? ''
  await updateOperation(tx, operation.operationId, { ...change, state: to })
  await appendOperationLog(tx, operation.operationId, [{ step: null, text: `${to}: ${because}` }])
  ports.log(`operation.${to}`, { ...ids(operation), because })
}

async function write(tx: Transaction, operation: LeasedOperation, record: StepRecord): Promise<void> {
  switch (record.kind) {
    case 'settings-confirmed':
      await insertSettingChanges(tx, operation.operationId, record.confirmed, record)
      if (record.managed)
        await insertSettingRevision(tx, operation.operationId, {
          instanceId: record.instanceId,
          managed: record.managed,
          before: record.managedBefore,
          reason: record.reason,
        })
      return
    case 'limits-confirmed':
      return recordLimits(tx, operation.operationId, record.limits)
    case 'instance-deleted':
      await markInstanceDeleted(tx, operation.instanceId)
      return closeIncidentsOfInstance(tx, operation.instanceId)
    case 'instance-left':
      await markInstanceLeft(tx, operation.instanceId)
      return closeIncidentsOfInstance(tx, operation.instanceId)
    case 'cluster-moved':
      return moveClusterPrimary(tx, record)
    case 'synchronous-rule':
      return changeHoldings(tx, record.clusterId, (h) => withRule(h, record.rule))
    case 'commit-level':
      return changeHoldings(tx, record.clusterId, (h) => withWeaker(h, record.scope))
    case 'promotion-begun':
      return changeHoldings(tx, record.clusterId, (h) => withPromotionBegun(h, record.promotion))
    case 'promotion-passed':
      return changeHoldings(tx, record.clusterId, (h) => withPromotionPassed(h, record.operationId))
    case 'promotion-settled':
      return changeHoldings(tx, record.clusterId, (h) => withPromotionSettled(h, record.operationId))
    case 'cluster-synchronous':
      return setClusterSynchronous(tx, record.clusterId, record)
    case 'cluster-automatic':
      return setClusterAutomatic(tx, record.clusterId, record.automatic)
    case 'cluster-page-repair':
      return setClusterPageRepair(tx, record.clusterId, record.pageRepair)
    case 'member-role':
      return setMemberRole(tx, record.instanceId, record.memberRole)
    case 'own-cluster':
      return moveToOwnCluster(tx, operation.instanceId)
  }
}

const ids = (operation: LeasedOperation, step?: LeasedStep) => ({
  operationId: operation.operationId,
  kind: operation.kind,
  instanceId: operation.instanceId,
  ...(step ? { step: step.name, attempt: step.attempt } : {}),
})

const faultLine = (fault: Fault) => [fault.message, fault.detail].filter(Boolean).join(': ')

function hasNews(step: LeasedStep, outcome: Extract<StepOutcome, { word: 'wait' }>): boolean {
  return (
    (outcome.log ?? []).length > 0 ||
    outcome.attempt !== undefined ||
    outcome.progress !== step.progress ||
    outcome.message !== step.message ||
    Object.entries(workOf(outcome)).some(([name, value]) => value !== step[name as keyof StepWork])
  )
}

/** What a pass knows of a step's bytes: while a host does not answer they stay as they were, and the rest is unknown. */
function workOf({ work }: Extract<StepOutcome, { word: 'wait' }>): Partial<StepWork> {
  return work ?? { remainingMs: null }
}

/** Progress over all steps, each counting the same. */
function overall(operation: LeasedOperation, ofStep: number): number {
  const succeeded = operation.steps.filter((s) => s.state === 'succeeded').length
  return Math.min(1, (succeeded + ofStep) / Math.max(1, operation.steps.length))
}

const aboutStep = (operation: LeasedOperation, step: LeasedStep) =>
  [operation.operationId, step.name] as const

const stepKey = (operation: LeasedOperation, step: LeasedStep) =>
  incidentKey('operation-step', ...aboutStep(operation, step))

const overdueIncident = (operation: LeasedOperation, step: LeasedStep) =>
  incident('operation-step', aboutStep(operation, step), {
    title: `"${operationRecord(operation.kind).title}" of instance "${operation.instanceName}" takes longer than expected`,
    detail: `Step "${step.title}" was due to end at ${step.deadlineAt?.toISOString()}.`,
    hint: 'Read its log. The operation continues until it ends or is cancelled.',
    hostId: operation.hostId,
    instanceId: operation.instanceId,
    operationId: operation.operationId,
  })
