import type { TaskInput, TaskKind, TaskResult } from '@floe/agent-contract'
import type { Flashbacks } from '../../engine/flashback/flashbacks'
import type { Instances } from '../../engine/instances'
import type { InstanceRegistry } from '../../engine/registry/registry'
import type { Work } from '../../engine/work'
import type { InstanceUsers } from '../../host/instance-users'
import type { AgentInstallation } from '../../installation'

export type TaskContext = Work & {
  /** Users of instances' own; null without root, where everything is one user. */
  users: InstanceUsers | null
  instances: Instances
  registry: InstanceRegistry
  installation: AgentInstallation
  flashbacks: Flashbacks
  /** The operation that asked for it. */
  operationId: string
  /** When the task was first started, ms since the epoch; the same when it is run again. */
  startedAt: number
  /** It runs again, because the agent was ended during its run before. */
  resumed: boolean
  /** What it is at right now; shown instead of the last line, kept nowhere. */
  say: (text: string) => void
  /** 0 to 1, or null where it cannot be known. */
  progress: (fraction: number | null) => void
  /** What the task keeps for a run of it after a kill: durable once written, null when it has kept nothing. */
  note: { read: () => unknown; write: (note: unknown) => void }
}

export type TaskOf<K extends TaskKind> = Extract<TaskInput, { kind: K }>

/**
 * What a task does. It has to be safe to run twice and to run again after having been killed anywhere: it looks at what
 * is there before it acts. Resolves only when the outcome was seen; throws a fault, or the signal's reason when it gave up.
 */
export type TaskBody<K extends TaskKind> = (task: TaskOf<K>, context: TaskContext) => Promise<TaskResult<K>>

/** The body of every kind of task. */
export type TaskBodies = { [K in TaskKind]: TaskBody<K> }
