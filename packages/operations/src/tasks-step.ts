import type { TaskStatus } from '@floe/agent-contract'
import { agentFault } from '@floe/agent-contract/client'
import { type ClusterObserved, type Fault, fault, type OperationKind } from '@floe/domain'
import { tellingPrimary } from './instance-control'
import { waitedMs } from './look-again'
import { fail, type MemberTask, next, type StepBody, type StepContext, type StepRecord, wait } from './step'
import { cancelledFault, startOnce } from './task-step'

type TasksStep<K extends OperationKind> = {
  deadlineMs: number
  /** The same tasks in every pass: from the input and earlier results, not from what moves meanwhile. */
  tasks(context: StepContext<K>, cluster: ClusterObserved): MemberTask[]
  /** One after the other, where they work on one instance or in an order; ends at the first that is not tolerated. */
  sequential?: boolean
  /** The fault of a task that has succeeded with something else than was asked for. */
  faultOf?(task: MemberTask, result: Record<string, unknown>): Fault | null
  /** Whose fault it was, in the fault that ends the step. */
  describe?(task: MemberTask, fault: Fault): Fault
  /** What is kept of their results; all of them by id when left out. */
  result?(
    results: Record<string, unknown>,
    context: StepContext<K>,
    cluster: ClusterObserved,
  ): Record<string, unknown>
  /** True where a member that fails or does not answer is left behind; its fault then stands in the result. */
  optional?(task: MemberTask, fault: Fault, context: StepContext<K>): boolean
  /** How long a host that does not answer is waited for where that is tolerated. */
  toleranceMs?: number | ((task: MemberTask, context: StepContext<K>, cluster: ClusterObserved) => number)
  records?(results: Record<string, unknown>, context: StepContext<K>, cluster: ClusterObserved): StepRecord[]
}

/**
 * A step of several tasks on members' hosts. Its result holds theirs by id, `{ fault }` for one that was left behind. Each
 * has a key of its own (step and id), so that a controller that takes over starts none twice.
 */
export function tasksStep<K extends OperationKind>(definition: TasksStep<K>): StepBody<K> {
  return {
    deadlineMs: definition.deadlineMs,
    async run(context) {
      const cluster = await context.readCluster()
      const tasks = definition.tasks(context, cluster)
      const results: Record<string, unknown> = {}
      const running: string[] = []
      const look = async (task: MemberTask) => {
        const answer = await pollTask(context, definition, cluster, task)
        const resultFault = answer && !answer.fault ? definition.faultOf?.(task, answer) : null
        const seen = resultFault ? { fault: resultFault } : answer
        if (seen === null) running.push(task.id)
        else results[task.id] = seen
        return seen
      }
      if (definition.sequential)
        for (const task of tasks) {
          const seen = await look(task)
          const fault = seen?.fault as Fault | undefined
          if (seen === null || (fault && !definition.optional?.(task, fault, context))) break
        }
      if (!definition.sequential) await Promise.all(tasks.map(look))
      if (running.length > 0)
        return wait(50, `${Object.keys(results).length} of ${tasks.length} done${atWork(running)}`, {
          progress: Object.keys(results).length / tasks.length,
        })
      for (const task of tasks) {
        const { fault } = (results[task.id] ?? {}) as { fault?: Fault }
        if (fault && (fault.code === 'task.cancelled' || !definition.optional?.(task, fault, context)))
          return fail(definition.describe?.(task, fault) ?? fault)
      }
      return next(definition.result?.(results, context, cluster) ?? results, {
        log: tasks.map(({ id }) => {
          const { fault } = (results[id] ?? {}) as { fault?: Fault }
          return { text: fault ? `${id}: ${fault.message}` : `${id}: done` }
        }),
        records: definition.records?.(results, context, cluster) ?? [],
      })
    },
  }
}

/** Who is waited for, where it is one. */
const atWork = ([only, ...others]: readonly string[]) =>
  only && others.length === 0 ? `; running: ${only}` : ''

/**
 * Lets tasks run side by side and answers their results by id, or null while one still runs. Whatever goes wrong with one
 * is its result: `{ fault }`. A host that does not answer is waited for `toleranceMs`.
 */
export async function pollTasks<K extends OperationKind>(
  context: StepContext<K>,
  cluster: ClusterObserved,
  tasks: readonly MemberTask[],
  toleranceMs: number,
): Promise<Record<string, Record<string, unknown>> | null> {
  const definition = { optional: () => true, toleranceMs }
  const seen = await Promise.all(
    tasks.map(async (task) => [task.id, await pollTask(context, definition, cluster, task)] as const),
  )
  if (seen.some(([, result]) => result === null)) return null
  return Object.fromEntries(seen) as Record<string, Record<string, unknown>>
}

/** The result of a task that ended, `{ fault }` of one that will not, null while it runs. */
async function pollTask<K extends OperationKind>(
  context: StepContext<K>,
  definition: Pick<TasksStep<K>, 'optional' | 'toleranceMs'>,
  cluster: ClusterObserved,
  { id, hostId, hostName, task }: MemberTask,
): Promise<Record<string, unknown> | null> {
  const key = {
    operationId: context.operationId,
    step: `${context.step.name}.${id}`.slice(0, 63),
    attempt: context.step.attempt,
  }
  const ask = async (): Promise<TaskStatus> => {
    const agent = context.agentOf(hostId)
    const status = await agent.checkTask({ key, afterLogSeq: 0 })
    if (context.cancelAskedAt && (status.state === 'not-started' || status.state === 'running'))
      return agent.cancelTask(key)
    if (status.state === 'not-started') return startOnce(agent, { key, task: tellingPrimary(task, cluster) })
    return status
  }
  const of = { id, hostId, hostName, task }
  const { toleranceMs = 5_000 } = definition
  const patience = typeof toleranceMs === 'number' ? toleranceMs : toleranceMs(of, context, cluster)
  const silent = silentHost(hostName)
  const tolerated = definition.optional?.(of, silent, context) === true
  let status: TaskStatus
  try {
    status = await (tolerated && !context.cancelAskedAt && patience < context.patience.questionMs
      ? within(ask(), patience, hostName)
      : ask())
  } catch (error) {
    const fault = agentFault(error)
    if (fault.code === 'task.instance_busy') return null
    // what only a later version knows is no valid input to it
    if (fault.code === 'agent.bad_request') return { fault: olderAgent(hostName, task.kind) }
    if (fault.code === SILENT) return { fault: silent }
    if (fault.code !== 'agent.unreachable') return { fault }
    const waited = waitedMs(context, context.cancelAskedAt ?? context.step.startedAt)
    if (context.cancelAskedAt && waited > context.patience.cancelGiveUpMs)
      return { fault: cancelledFault(`Host "${hostName}" does not answer; the step may still run there.`) }
    return tolerated && waited > patience ? { fault: { ...silent, detail: fault.detail ?? null } } : null
  }
  switch (status.state) {
    case 'succeeded':
      return status.result ?? {}
    case 'failed':
      return { fault: status.fault ?? { code: 'agent.no_reason', message: `task "${task.kind}" failed` } }
    case 'cancelled':
      return { fault: cancelledFault('Its task was cancelled.') }
    default:
      return null
  }
}

const SILENT = 'agent.silent'

const silentHost = (hostName: string): Fault => ({
  code: 'agent.unreachable',
  message: `host "${hostName}" does not answer`,
})

/** Who is waited for only a moment does not hold the others up for as long as a question may take; what it was asked may still reach it. */
async function within<T>(question: Promise<T>, ms: number, hostName: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(fault(SILENT, `host "${hostName}" has not answered in time`)), ms)
  })
  question.catch(() => {})
  return Promise.race([question, late]).finally(() => clearTimeout(timer))
}

const olderAgent = (hostName: string, kind: string): Fault => ({
  code: 'agent.older',
  message: `the agent of host "${hostName}" is of an earlier version`,
  detail: `It does not know task "${kind}".`,
  hint: 'Run "git pull" and "./floe up" on that host, on an enrolled one "./floe agent start", then try again.',
})
