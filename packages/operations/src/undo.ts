import type { TaskStatus } from '@floe/agent-contract'
import { agentFault } from '@floe/agent-contract/client'
import type { Fault, OperationKind } from '@floe/domain'
import { tellingPrimary } from './instance-control'
import { waitedMs } from './look-again'
import {
  fail,
  type OperationDefinition,
  type StepContext,
  type StepOutcome,
  type StepRecord,
  type UndoTask,
  wait,
} from './step'
import { startOnce } from './task-step'

/**
 * Runs the tasks that take begun steps back, one after the other, each once per operation by its key. Answers `wait` until
 * all have ended, then the outcome it was called for, with what could not be undone, or what is recorded when all was.
 */
export async function undoSteps<K extends OperationKind>(
  definition: OperationDefinition<K>,
  context: StepContext<K>,
  begun: readonly string[],
  why: Fault,
  outcome: StepOutcome,
): Promise<StepOutcome> {
  const cluster = await context.readCluster()
  const tasks = (definition.undo?.(context, cluster, why) ?? []).filter((t) => begun.includes(t.after))
  const left: string[] = []
  const ended: Record<string, Record<string, unknown>> = {}
  const records: StepRecord[] = []
  const done = new Set<string>()
  let whole = true
  const leave = ({ task, hostName, leaves }: UndoTask, why: string) => {
    left.push(`${task.kind} on host "${hostName}": ${why}${leaves ? ` (${leaves.words})` : ''}`)
    records.push(...(leaves?.records ?? []))
  }
  for (const undoTask of tasks) {
    const { id, hostId, hostName, task, needs } = undoTask
    const lacking = needs?.find((other) => tasks.some((t) => t.id === other) && !done.has(other))
    if (lacking) {
      leave(undoTask, `not tried, because ${lacking} was not done`)
      whole = false
      continue
    }
    const key = { operationId: context.operationId, step: `undo.${id}`.slice(0, 63), attempt: 1 }
    let status: TaskStatus
    try {
      const agent = context.agentOf(hostId)
      status = await agent.checkTask({ key, afterLogSeq: 0 })
      if (status.state === 'not-started') {
        await startOnce(agent, { key, task: tellingPrimary(task, cluster) })
        return wait(50, 'undoing what was started')
      }
    } catch (error) {
      const fault = agentFault(error)
      if (fault.code === 'task.instance_busy') return wait(200, 'undoing what was started')
      const since = context.cancelAskedAt ?? context.step.startedAt
      const heardMs = cluster.members.find((m) => m.hostId === hostId)?.ageMs ?? Number.POSITIVE_INFINITY
      const silentMs = Math.min(waitedMs(context, since), heardMs)
      // while no host is heard it is the console that is cut off, and nothing else could end a cluster without a primary
      const cutOff = task.kind === 'restore-primary' && cluster.members.every((m) => m.hostState !== 'online')
      if (fault.code === 'agent.unreachable' && (silentMs < context.patience.undoGiveUpMs || cutOff))
        return wait(1_000, `host "${hostName}" does not answer`)
      if (fault.code === 'instance.not_found') continue
      leave(undoTask, fault.message)
      whole &&= fault.code === 'host.revoked'
      continue
    }
    if (status.state === 'running') return wait(100, 'undoing what was started')
    ended[id] = status.result ?? {}
    if (status.state === 'succeeded') done.add(id)
    if (status.state === 'succeeded' || status.fault?.code === 'instance.not_found') continue
    leave(undoTask, status.fault?.message ?? 'it was given up')
    whole = false
  }
  if (outcome.word !== 'fail') return outcome
  const { word: _word, fault: was, ...more } = outcome
  const detail = [was.detail, left.length > 0 ? `Could not be undone: ${left.join('; ')}.` : null]
  if (whole) records.push(...(definition.undone?.(context, ended) ?? []))
  return fail(left.length > 0 ? { ...was, detail: detail.filter(Boolean).join(' ') } : was, {
    ...more,
    records: [...(more.records ?? []), ...records],
  })
}
