import type { TaskInput, TaskKey, TaskStatus } from '@floe/agent-contract'
import type { InstanceView, Transaction } from '@floe/db'
import type {
  AutomaticFailover,
  ClusterObserved,
  CommitMode,
  CommitModeScope,
  ConfirmedSetting,
  Fault,
  InstanceLimits,
  InstanceState,
  OperationInput,
  OperationKind,
  PageRepair,
  PromotedAs,
  PromotionBegun,
  StepWork,
  SynchronousRule,
  SynchronousStandbys,
} from '@floe/domain'
import type { Patience } from './patience'

/** What `plan` may look at besides the input: the last report on the instance, `null` where there was none yet. */
export type Observed = { state: InstanceState | null }

/** One re-runnable unit of an operation. Names and order are stored with the operation; the body is found by name. */
export type PlannedStep<Name extends string = string> = {
  name: Name
  /** What a person reads while it runs. */
  title: string
}

/** The agent of the operation's host, as far as steps need it. Rejects with FaultError or what agentFault() understands. */
export type AgentTasks = {
  startTask(input: { key: TaskKey; task: TaskInput }): Promise<TaskStatus>
  checkTask(input: { key: TaskKey; afterLogSeq: number }): Promise<TaskStatus>
  cancelTask(key: TaskKey): Promise<TaskStatus>
}

/** What the controller has stored of the instance. */
export type StoredObservation = {
  state: InstanceState
  because: string | null
  postmasterPid: number | null
  /** Where it lies on its host; null while no report has said so. */
  directory: string | null
  observedAt: Date | null
}

export type StepContext<K extends OperationKind = OperationKind> = {
  operationId: string
  input: OperationInput<K>
  hostName: string
  /** `doneBytes`: as it said when it last waited; null before that. */
  step: { name: string; attempt: number; startedAt: Date; taskLogSeq: number; doneBytes?: number | null }
  /** Results of the steps before, by name. */
  results: Readonly<Record<string, Record<string, unknown>>>
  /** When a cancel was asked for, else null. */
  cancelAskedAt: Date | null
  now: Date
  /**
   * Since when this controller has been at work without a standstill. Until it has heard of hosts, what is stored of them may
   * be older than that; a host's silence before is not known.
   */
  atWorkSince: Date
  patience: Patience
  agent: AgentTasks
  readObservation(): Promise<StoredObservation>
  /** The agent of another host. */
  agentOf(hostId: string): AgentTasks
  /** The cluster of the operation's instance, as last observed. */
  readCluster(): Promise<ClusterObserved>
  /** Writes what has to be known before something is begun; again in each pass that begins it, so it has to bear that. */
  record(records: readonly StepRecord[]): Promise<void>
}

/** What ending a step writes in the same transaction. */
export type StepRecord =
  | {
      kind: 'settings-confirmed'
      confirmed: ConfirmedSetting[]
      /** What the managed file holds now, and held before; absent from an agent that does not report it. */
      managed?: Record<string, string> | undefined
      managedBefore?: Record<string, string> | undefined
      /** Why; the reason asked with the operation when left out. */
      reason?: string | undefined
      /** The member it was confirmed by; the operation's own instance when left out. */
      instanceId?: string | undefined
    }
  /** The instance's agent keeps these limits. */
  | { kind: 'limits-confirmed'; limits: InstanceLimits }
  | { kind: 'instance-deleted' }
  /** Removed though its host could not be asked: should it show up again, it is fenced and reported. */
  | { kind: 'instance-left' }
  /** Another member is the primary from now on. */
  | {
      kind: 'cluster-moved'
      clusterId: string
      primary: string
      /** `fence`: it could not be fenced; that is to be done while it is on no newer timeline than this one. */
      former: {
        instanceId: string
        memberRole: 'standby' | 'fenced'
        fence: { timeline: number } | null
      } | null
      synchronous: SynchronousStandbys | null
      /** Others that may accept writes: fenced as soon as their hosts answer. */
      fenceOrdered?: { instanceIds: readonly string[]; timeline: number }
      promoted: PromotedAs
    }
  /** Another set is about to be in force on the primary, beside the one that is. */
  | { kind: 'synchronous-rule'; clusterId: string; rule: SynchronousRule }
  /** A database or a role is about to commit with this level. */
  | { kind: 'commit-level'; clusterId: string; scope: CommitModeScope }
  /** A member is about to be promoted. Until it is known how that ended, it may be a primary. */
  | { kind: 'promotion-begun'; clusterId: string; promotion: PromotionBegun }
  | { kind: 'promotion-settled'; clusterId: string; operationId: string }
  /** It may have taken place, and matters no more. */
  | { kind: 'promotion-passed'; clusterId: string; operationId: string }
  | {
      kind: 'cluster-synchronous'
      clusterId: string
      synchronous: SynchronousStandbys | null
      commitMode?: CommitMode
    }
  | { kind: 'cluster-automatic'; clusterId: string; automatic: AutomaticFailover | null }
  | { kind: 'cluster-page-repair'; clusterId: string; pageRepair: PageRepair }
  | { kind: 'member-role'; instanceId: string; memberRole: 'standby' | 'fenced' }
  /** The operation's instance has a cluster of its own from now on. */
  | { kind: 'own-cluster' }

export type LogLine = { at?: number; text: string }

/** News of a pass, whatever its outcome. */
type News = { log?: LogLine[]; taskLogSeq?: number }

/**
 * How a pass over a step ends; there is no fifth way. `next`: the step is done, go on. `wait`: look again after pollMs,
 * nothing is lost if that is never. `done`: the whole operation is done. `fail`: the operation fails (or is cancelled,
 * when the fault is `task.cancelled` and a cancel was asked for).
 */
export type StepOutcome =
  | ({ word: 'next' | 'done'; result: Record<string, unknown>; records: StepRecord[] } & News)
  | ({
      word: 'wait'
      pollMs: number
      progress: number | null
      message: string | null
      /** Bytes of a step that works through them; null where they are not known now. */
      work: StepWork | null
      /** The task of this attempt has failed, and the next pass begins this one. */
      attempt?: number
    } & News)
  | ({ word: 'fail'; fault: Fault; records?: StepRecord[] } & News)

export const next = (
  result: Record<string, unknown> = {},
  more: News & { records?: StepRecord[] } = {},
): StepOutcome => ({ records: [], ...more, word: 'next', result })

export const wait = (
  pollMs: number,
  message: string | null,
  more: News & { progress?: number | null; work?: StepWork | null; attempt?: number } = {},
): StepOutcome => ({ progress: null, work: null, ...more, word: 'wait', pollMs, message })

/** `records`: what has happened on the host although the operation failed. */
export const fail = (fault: Fault, more: News & { records?: StepRecord[] } = {}): StepOutcome => ({
  ...more,
  word: 'fail',
  fault,
})

/** The body of a step and how long it may wait before an incident opens. Safe to run twice, also half-way. */
export type StepBody<K extends OperationKind = OperationKind> = {
  deadlineMs: number
  run(context: StepContext<K>): Promise<StepOutcome>
}

/** What is asked, as a guard sees it: in the transaction that would order it. */
export type Guarded<K extends OperationKind = OperationKind> = {
  tx: Transaction
  input: OperationInput<K>
  instance: InstanceView
  /** The instance's cluster, read once. */
  readCluster(): Promise<ClusterObserved | undefined>
}

/** What is asked of an instance that there may not be a row of. */
export type Claimed<K extends OperationKind> = {
  tx: Transaction
  input: OperationInput<K>
  /** The operation that this one retries. */
  retryOf: string | null
  /** The host that was named for it. */
  hostId: string | undefined
  instance: InstanceView | undefined
}

/** An operation: which steps it takes is decided by a pure function, each step's body is found by its name. */
export type OperationDefinition<K extends OperationKind, Name extends string = string> = {
  kind: K
  /**
   * Makes the rows of the instance that the operation is to make, with the row of the operation. False where there is none to
   * be made (any more); then the instance has to be there like any other.
   */
  claim?(claimed: Claimed<K>): Promise<boolean>
  /** Refuses, by throwing a fault, what must not be ordered as things stand. What its steps find later they refuse themselves. */
  guard?(asked: Guarded<K>): void | Promise<void>
  /** It is ordered for an instance that was deleted, too. */
  alsoDeleted?: true
  plan(input: OperationInput<K>, observed: Observed): PlannedStep<Name>[]
  steps: Record<Name, StepBody<K>>
  /**
   * What takes steps back when the operation fails or is cancelled: tasks, in this order, of steps that were begun. Looked
   * up again in every pass, so it has to name the same ones each time.
   */
  undo?(context: StepContext<K>, cluster: ClusterObserved, why: Fault): UndoTask[]
  /**
   * What is recorded once everything was undone, by the results of the tasks that did so (by id). A host that was
   * revoked counts as undone: nothing can be asked of it.
   */
  undone?(context: StepContext<K>, ended: Readonly<Record<string, Record<string, unknown>>>): StepRecord[]
  /** A retry begins from the first step, because a failure takes the earlier ones back. */
  retryAfresh?: boolean
}

/** A task on some host; `id` is part of its key and distinguishes it from others of the same step. */
export type MemberTask = { id: string; hostId: string; hostName: string; task: TaskInput }
export type UndoTask = MemberTask & {
  after: string
  /** Ids of tasks before it; where one of them could not be done, this one is not tried. */
  needs?: readonly string[]
  /** What stands there where it could not be done, as a sentence and for the history. */
  leaves?: { words: string; records?: StepRecord[] }
}

/** Keeps the step names of a definition checked against its plan. */
export function defineOperation<K extends OperationKind, Name extends string>(
  kind: K,
  definition: Omit<OperationDefinition<NoInfer<K>, Name>, 'kind'>,
): OperationDefinition<K, Name> {
  return { kind, ...definition }
}
