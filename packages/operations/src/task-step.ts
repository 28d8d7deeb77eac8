import {
  type TaskInput,
  type TaskKey,
  type TaskKind,
  type TaskResult,
  type TaskStatus,
  tasks,
} from '@floe/agent-contract'
import { agentFault } from '@floe/agent-contract/client'
import {
  type ClusterMember,
  type ClusterObserved,
  type Fault,
  type OperationKind,
  ruleOfNames,
} from '@floe/domain'
import { tellingPrimary } from './instance-control'
import { waitedMs } from './look-again'
import {
  type AgentTasks,
  fail,
  next,
  type StepBody,
  type StepContext,
  type StepOutcome,
  type StepRecord,
  wait,
} from './step'

/** Between a task that failed and its next attempt. */
const AGAIN_MS = 1_000

type TaskOf<T extends TaskKind> = Extract<TaskInput, { kind: T }>
type TaskStep<K extends OperationKind, T extends TaskKind> = {
  deadlineMs: number
  /** A task to start beside it while it runs, once, so that it ends sooner; null while there is none. */
  escalate?(context: StepContext<K>): Promise<TaskInput | null>
  /** The member whose host carries it out; the operation's own when left out. */
  on?(context: StepContext<K>, cluster: ClusterObserved): ClusterMember | null
  /** The result where the host is unreachable for a while, or revoked, and a person chose to go on without it. */
  withoutHost?(
    context: StepContext<K>,
  ): Promise<{ result: TaskResult<T> & object; log: string; records?: StepRecord[] } | null>
  /** Ends the step without a task where there is nothing to do. */
  skip?(context: StepContext<K>, cluster: ClusterObserved): Record<string, unknown> | null
  task(context: StepContext<K>, cluster: ClusterObserved): TaskOf<T> | Promise<TaskOf<T>>
  /** Recorded before the task is started: what it may cause, in case its answer is never received. */
  begins?(task: TaskOf<T>, context: StepContext<K>, cluster: ClusterObserved): StepRecord[]
  /** Recorded at a failure whose fault proves that what was begun did not take place. */
  recordsFailure?(fault: Fault, context: StepContext<K>, cluster: ClusterObserved): StepRecord[]
  /** What its success is recorded as. */
  records?(result: TaskResult<T>, context: StepContext<K>, cluster: ClusterObserved): StepRecord[]
  /** The fault in a result: the task succeeded, but not with what the step is for. */
  faultOf?(result: TaskResult<T>): Fault | null
  /** Fails the step once the member's host has not answered for this long; without it the step waits forever. */
  silence?: {
    afterMs: number
    fault(member: ClusterMember, context: StepContext<K>, cluster: ClusterObserved): Fault
  }
  /** Whether a failed task runs again as the next attempt. */
  again?(fault: Fault, context: StepContext<K>): boolean
  /** The result that a failure counts as, where the wanted state is reached already. */
  recoverFrom?(fault: Fault): TaskResult<T> | undefined
  /** The result where the agent's version does not know the task; without it that is a failure. */
  olderAgent?: { result: TaskResult<T>; log: string }
  /** Polled again after this many ms: short where clients wait. */
  pollMs?: number
}

/**
 * A step that runs one task of the host's agent: check, start when it was never started, then look until it ended. The
 * key (operation, step, attempt) makes starting it twice start it once. An agent that does not answer is waited for.
 */
export function taskStep<K extends OperationKind, T extends TaskKind>(
  kind: T,
  definition: TaskStep<K, T>,
): StepBody<K> {
  return {
    deadlineMs: definition.deadlineMs,
    async run(context) {
      // a step on the operation's own instance asks for no cluster, and its functions get none
      const cluster = definition.on ? await context.readCluster() : (null as unknown as ClusterObserved)
      const skipped = definition.skip?.(context, cluster)
      if (skipped) return next(skipped)
      const member = definition.on?.(context, cluster)
      const begunAt = performance.now()
      const place: Place = {
        cluster,
        member: member ?? null,
        hostName: member?.hostName ?? context.hostName,
        askedMs: () => performance.now() - begunAt,
      }
      const key = {
        operationId: context.operationId,
        step: context.step.name,
        attempt: context.step.attempt,
      }
      const afterLogSeq = context.step.taskLogSeq
      let status: TaskStatus
      try {
        const agent = member ? context.agentOf(member.hostId) : context.agent
        status = await agent.checkTask({ key, afterLogSeq })
        if (context.cancelAskedAt) {
          // asked also for a task that was never started: the agent then refuses a start that is still on its way
          if (status.state === 'not-started' || status.state === 'running') {
            const { state } = await agent.cancelTask(key)
            // one that began, and even ended, in between is not one that was never begun
            if (status.state === 'not-started' && state === 'cancelled')
              return failed(context, definition, place, cancelledFault(NOT_STARTED))
            status = await agent.checkTask({ key, afterLogSeq })
          }
        } else if (status.state === 'not-started') {
          const task = await decide(() => definition.task(context, cluster))
          const begins = [...(definition.begins?.(task, context, cluster) ?? []), ...ruleBegun(task, cluster)]
          if (begins.length > 0) await decide(() => context.record(begins))
          await startOnce(agent, { key, task: tellingPrimary(task, cluster) })
          status = await agent.checkTask({ key, afterLogSeq })
        }
        const beside =
          status.state === 'running' ? ((await decide(() => definition.escalate?.(context))) ?? null) : null
        if (beside) await startBeside(context, { ...key, step: `${key.step}-hasten` }, beside)
      } catch (error) {
        if (error instanceof TaskPreparationError) throw error.thrown
        return refused(context, definition, place, agentFault(error))
      }
      return ended(context, definition, place, kind, status)
    },
  }
}

/** A task that sets other synchronous standbys: both sets may be in force until one is seen to be. */
function ruleBegun(task: TaskInput, cluster: ClusterObserved | null): StepRecord[] {
  if (task.kind !== 'set-synchronous' || !cluster) return []
  const rule = ruleOfNames(task.standbyNames, cluster.members)
  return [{ kind: 'synchronous-rule', clusterId: cluster.clusterId, rule }]
}

/** What went wrong before a host was asked, e.g. that the cluster could not be read: not to be taken for its answer. */
class TaskPreparationError extends Error {
  readonly thrown: unknown
  constructor(thrown: unknown) {
    super('not decided what to ask the host')
    this.thrown = thrown
  }
}

async function decide<V>(what: () => V | Promise<V>): Promise<V> {
  try {
    return await what()
  } catch (error) {
    throw new TaskPreparationError(error)
  }
}

/**
 * Starts a task, or finds it started by a call that was still on its way: of an older lease, or one whose answer came too
 * late. That call may have seen the cluster otherwise; the task that runs is the one that counts.
 */
export async function startOnce(
  agent: AgentTasks,
  start: { key: TaskKey; task: TaskInput },
): Promise<TaskStatus> {
  try {
    return await agent.startTask(start)
  } catch (error) {
    if (agentFault(error).code !== 'task.key_reused') throw error
    return agent.checkTask({ key: start.key, afterLogSeq: 0 })
  }
}

/** Starts it unless it was. That the host has no use for it (any more) is no failure of the step. */
async function startBeside(
  context: Pick<StepContext, 'agent'>,
  key: TaskKey,
  task: TaskInput,
): Promise<void> {
  const { state } = await context.agent.checkTask({ key, afterLogSeq: 0 })
  if (state !== 'not-started') return
  try {
    await context.agent.startTask({ key, task })
  } catch (error) {
    const { code } = agentFault(error)
    if (code === 'agent.unreachable') throw error
  }
}

/** Of a step whose task was never begun, and whose agent would not begin it any more. */
export const NOT_STARTED = 'It had not been started.'

const failed = <K extends OperationKind, T extends TaskKind>(
  context: StepContext<K>,
  definition: TaskStep<K, T>,
  { cluster }: Place,
  fault: Fault,
  news: Parameters<typeof fail>[1] = {},
): StepOutcome =>
  fail(fault, { ...news, records: definition.recordsFailure?.(fault, context, cluster) ?? [] })

/** `askedMs`: how long this pass has been waiting for answers; ages are of its begin. */
type Place = {
  cluster: ClusterObserved
  member: ClusterMember | null
  hostName: string
  askedMs(): number
}

export const cancelledFault = (detail: string): Fault => ({
  code: 'task.cancelled',
  message: 'the step was cancelled',
  detail,
})

async function refused<K extends OperationKind, T extends TaskKind>(
  context: StepContext<K>,
  definition: TaskStep<K, T>,
  place: Place,
  fault: Fault,
): Promise<StepOutcome> {
  const waited = waitedMs(context, context.step.startedAt)
  const gone =
    fault.code === 'host.revoked' ||
    (fault.code === 'agent.unreachable' && waited > context.patience.withoutHostMs)
  const without = gone ? await definition.withoutHost?.(context) : null
  if (without)
    return next(without.result, {
      log: [{ text: fault.message }, { text: without.log }],
      records: without.records ?? [],
    })
  if (fault.code === 'agent.unreachable') {
    if (context.cancelAskedAt && waitedMs(context, context.cancelAskedAt) > context.patience.cancelGiveUpMs)
      return fail(cancelledFault(`Host "${place.hostName}" does not answer; the step may still run there.`))
    const { member } = place
    // heard of by its reports, it may be its tasks that are slow to answer
    const silentMs = Math.min(waited, member?.ageMs ?? Number.POSITIVE_INFINITY) + place.askedMs()
    if (definition.silence && member && silentMs > definition.silence.afterMs)
      return failed(context, definition, place, definition.silence.fault(member, context, place.cluster))
    return wait(1_000, `host "${place.hostName}" does not answer`)
  }
  // another task on the instance, e.g. of an operation that was given up: its turn ends
  if (fault.code === 'task.instance_busy') {
    if (context.cancelAskedAt) return fail(cancelledFault(NOT_STARTED))
    return wait(500, fault.detail ?? fault.message)
  }
  // what only a later version knows is no valid input to it
  if (fault.code === 'agent.bad_request' && definition.olderAgent)
    return next(definition.olderAgent.result, { log: [{ text: definition.olderAgent.log }] })
  const recovered = definition.recoverFrom?.(fault)
  if (recovered)
    return next(recovered, { records: definition.records?.(recovered, context, place.cluster) ?? [] })
  return fail(fault)
}

function ended<K extends OperationKind, T extends TaskKind>(
  context: StepContext<K>,
  definition: TaskStep<K, T>,
  place: Place,
  kind: T,
  status: TaskStatus,
): StepOutcome {
  const lines = status.log.filter((line) => line.seq > context.step.taskLogSeq)
  const news = {
    log: lines.map((line) => ({ at: line.at, text: line.text })),
    taskLogSeq: lines.reduce((max, line) => Math.max(max, line.seq), context.step.taskLogSeq),
  }
  switch (status.state) {
    case 'succeeded': {
      const parsed = tasks[kind].result.safeParse(status.result)
      if (!parsed.success)
        return fail(
          { code: 'agent.bad_result', message: `task "${kind}" answered an unexpected result` },
          news,
        )
      const result = parsed.data as TaskResult<T>
      const records = definition.records?.(result, context, place.cluster) ?? []
      const resultFault = definition.faultOf?.(result)
      if (resultFault) return fail(resultFault, { ...news, records })
      return next(result, { ...news, records })
    }
    case 'failed': {
      const fault = status.fault ?? {
        code: 'agent.no_reason',
        message: `task "${kind}" failed without a reason`,
      }
      const recovered = definition.recoverFrom?.(fault)
      if (recovered)
        return next(recovered, {
          ...news,
          records: definition.records?.(recovered, context, place.cluster) ?? [],
        })
      if (!context.cancelAskedAt && definition.again?.(fault, context))
        return wait(AGAIN_MS, `again: ${fault.message}`, {
          ...news,
          attempt: context.step.attempt + 1,
        })
      return failed(context, definition, place, fault, news)
    }
    case 'cancelled':
      return fail(cancelledFault(status.message ?? 'Its task was cancelled.'), news)
    default:
      return wait(definition.pollMs ?? pollMs(context), status.message, {
        ...news,
        progress: status.progress,
        work: status.work ?? null,
      })
  }
}

/** Short tasks are seen at once, long ones do not keep the agent busy with questions. */
function pollMs(context: StepContext): number {
  const age = context.now.getTime() - context.step.startedAt.getTime()
  if (age < 5_000) return 100
  return age < 30_000 ? 250 : 1_000
}
