import { z } from 'zod'
import { AutomaticFailover } from './automatic-failover'
import { ClusterId } from './cluster'
import { MemberSettings } from './cluster-settings'
import { InstanceId, InstanceName, ScramVerifier } from './ids'
import { InstanceIntent, StopMode } from './instance'
import { KeptAsideName } from './kept-aside'
import { PageRepair } from './page-repair'
import { CommitMode, SynchronousStandbys } from './replication'
import { ChangeReason, SettingChange } from './setting'

export const OperationState = z.enum(['queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled'])
export type OperationState = z.infer<typeof OperationState>

export const endedOperationStates: readonly OperationState[] = ['succeeded', 'failed', 'cancelled']

export type OperationTransition = { from: OperationState; to: OperationState; because: string }

/** Every edge of an operation's life. `because` is the log line. Only the controller walks them, save for the two marked. */
export const operationTransitions: readonly OperationTransition[] = [
  { from: 'queued', to: 'running', because: 'a controller leased it' },
  { from: 'queued', to: 'cancelled', because: 'it was cancelled before it started' },
  { from: 'running', to: 'succeeded', because: 'its last step is done' },
  { from: 'running', to: 'failed', because: 'a step failed' },
  // asked by a person through web
  { from: 'running', to: 'cancelling', because: 'a cancel was asked for' },
  { from: 'cancelling', to: 'cancelled', because: 'the running step was given up' },
  { from: 'cancelling', to: 'succeeded', because: 'its last step was done before the cancel took effect' },
  { from: 'cancelling', to: 'failed', because: 'a step failed while it was being cancelled' },
]

export function canMoveOperation(from: OperationState, to: OperationState): boolean {
  return operationTransitions.some((t) => t.from === from && t.to === to)
}

export const StepState = z.enum(['pending', 'running', 'succeeded', 'failed', 'cancelled'])
export type StepState = z.infer<typeof StepState>

/** An instance as its agent reports it to a console that has no row of it. */
export const ReportedInstance = z.object({
  /** What it is to be named. */
  name: InstanceName,
  /** What the agent names it until then. */
  formerName: InstanceName,
  port: z.number().int(),
  systemIdentifier: z.string(),
  intent: InstanceIntent,
})
export type ReportedInstance = z.infer<typeof ReportedInstance>

/** What each kind of operation is asked with. The kind is the verb in console, API and command line. */
export const operationInputs = {
  'create-instance': z.object({
    instanceId: InstanceId,
    name: InstanceName,
    /** Settings written before the first start; names and values as in postgresql.conf. */
    settings: z.record(z.string(), z.string()).default({}),
    /** Verifier of the password that role `postgres` gets; the password itself is stored nowhere. */
    ownerPasswordVerifier: ScramVerifier.nullable().default(null),
  }),
  'start-instance': z.object({ instanceId: InstanceId }),
  'stop-instance': z.object({
    instanceId: InstanceId,
    mode: StopMode.default('fast'),
    /** It began as a fast one, and somebody would not wait for it. */
    hastened: z.boolean().optional(),
  }),
  'restart-instance': z.object({
    instanceId: InstanceId,
    mode: StopMode.default('fast'),
    hastened: z.boolean().optional(),
  }),
  'reload-instance': z.object({ instanceId: InstanceId }),
  /** Gives an instance that shares a user of the operating system with others one of its own; one that runs is restarted. */
  'separate-instance': z.object({ instanceId: InstanceId }),
  /**
   * Has the agent know an instance again whose files and engine are on its host, and which it has lost; or, with `reported`,
   * the console one that the agent reports and of which there is no row.
   */
  'adopt-instance': z.object({
    instanceId: InstanceId,
    reported: ReportedInstance.optional(),
  }),
  'delete-instance': z.object({
    instanceId: InstanceId,
    /** Typed by the person; must equal the instance's name. */
    confirmName: z.string(),
    /** Keep the data directory on the host (renamed, never started again by Floe). */
    keepFiles: z.boolean().default(false),
  }),
  'change-settings': z.object({
    instanceId: InstanceId,
    changes: z.array(SettingChange).min(1),
    /** Why, in the words of who asked; kept in the history. */
    reason: ChangeReason.optional(),
    /** The state that these changes go back to. */
    stateId: z
      .string()
      .regex(/^\d{1,19}$/)
      .optional(),
  }),
  /** What was changed past Floe (an edited file, ALTER SYSTEM) is kept or put back. */
  'resolve-drift': z.object({
    instanceId: InstanceId,
    how: z.enum(['adopt', 'revert']),
    reason: ChangeReason.optional(),
  }),
  /** A further member: a copy of the cluster's primary that follows it. */
  'create-standby': z.object({ instanceId: InstanceId, name: InstanceName, clusterId: ClusterId }),
  /** Takes a standby out of its cluster, with its slot, its role and its files. */
  'remove-standby': z.object({
    instanceId: InstanceId,
    /** Typed by the person; must equal the standby's name. */
    confirmName: z.string(),
    keepFiles: z.boolean().default(false),
    /**
     * Name of the standby's host, typed by the person, where that host cannot be reached: the standby leaves the cluster
     * and what lies on the host stays there, to be fenced should it come back.
     */
    unreachableHost: z.string().nullable().default(null),
  }),
  /** Makes a fenced or broken member a standby again. `rewind` falls back to `clone` where pg_rewind is not allowed. */
  'rejoin-standby': z.object({
    instanceId: InstanceId,
    method: z.enum(['rewind', 'clone']).default('rewind'),
    /** What only it had acknowledged is not kept aside: a person said that it may be lost. */
    discardOwn: z.boolean().optional(),
  }),
  /** Removes what was kept aside at a rejoin. */
  'drop-kept-aside': z.object({
    instanceId: InstanceId,
    keptAside: KeptAsideName,
    /** Typed by the person; must equal the instance's name. */
    confirmName: z.string(),
  }),
  /** Makes a standby the primary of a cluster of its own; the cluster it leaves goes on. */
  'promote-standby': z.object({ instanceId: InstanceId, confirmName: z.string() }),
  /** Lets a standby take over from a running primary, which becomes its standby. Loses nothing. */
  'switchover-cluster': z.object({ clusterId: ClusterId, instanceId: InstanceId }),
  /** Lets a standby take over from a primary that is gone, or has to go. The former one is fenced. */
  'failover-cluster': z.object({
    clusterId: ClusterId,
    instanceId: InstanceId,
    /** Nobody was named: another standby is taken where it turns out to hold more, once positions are final. */
    choose: z.boolean().default(false),
    /**
     * At most this many bytes of WAL may be lost, typed by the person; `unknown` accepts a loss that cannot be known. Null:
     * nothing that was acknowledged may be lost.
     */
    acceptLoss: z
      .union([z.number().int().min(0), z.literal('unknown')])
      .nullable()
      .default(null),
    /** Name of the primary's host, typed by the person, where that host cannot be reached and so not be fenced now. */
    unreachableHost: z.string().nullable().default(null),
    /** The same of hosts whose instances may have been promoted without the console having heard of it. */
    alsoUnreachable: z.array(z.string()).max(20).default([]),
    /** What the controller saw, where it decided this by itself. */
    because: z.array(z.string().max(1_000)).max(20).optional(),
  }),
  /** Which standbys a commit waits for, and how long. */
  'change-synchronous': z.object({
    clusterId: ClusterId,
    /** The primary at the moment of asking. */
    instanceId: InstanceId,
    synchronous: SynchronousStandbys.nullable(),
    commitMode: CommitMode,
  }),
  /** Whether and how a cluster fails over by itself; null: it does not. */
  'change-automatic': z.object({
    clusterId: ClusterId,
    /** The primary at the moment of asking. */
    instanceId: InstanceId,
    automatic: AutomaticFailover.nullable(),
  }),
  /** `synchronous_commit` of a database, a role, or a role in a database; null takes it away. */
  'change-commit-mode': z.object({
    instanceId: InstanceId,
    database: z.string().min(1).max(63).nullable(),
    role: z.string().min(1).max(63).nullable(),
    commitMode: CommitMode.nullable(),
  }),
  /**
   * Changes of settings on members of a cluster, in the order that keeps standbys replaying. Every member is named, also
   * one that is to become what it is already.
   */
  'change-cluster-settings': z.object({
    clusterId: ClusterId,
    /** The primary at the moment of asking. */
    instanceId: InstanceId,
    members: z.array(MemberSettings).min(1),
    /** False: what needs a restart is written and waits for the next one. Refused where the order matters. */
    restart: z.boolean().default(true),
    /** Why, in the words of who asked; kept in the history of every member. */
    reason: ChangeReason.optional(),
    /** The state that these changes go back to. */
    stateId: z
      .string()
      .regex(/^\d{1,19}$/)
      .optional(),
  }),
  /** Which members give the others pages that a crash tore, wired anew on every member. */
  'change-page-repair': z.object({
    clusterId: ClusterId,
    /** The primary at the moment of asking. */
    instanceId: InstanceId,
    pageRepair: PageRepair,
  }),
  /** Gives members of an earlier version roles whose names nobody foresees, while they run. */
  'renew-roles': z.object({
    clusterId: ClusterId,
    /** The primary at the moment of asking. */
    instanceId: InstanceId,
  }),
  /** Lets clients on other hosts in over TLS only. */
  'require-tls': z.object({ instanceId: InstanceId }),
  /**
   * Stops a former primary that came back and keeps it from accepting writes. Asked for by the controller, for an instance
   * on this timeline or an older one: on a newer one it was promoted since.
   */
  'fence-instance': z.object({
    instanceId: InstanceId,
    timeline: z.number().int().positive().nullable().optional(),
  }),
} as const

export type OperationKind = keyof typeof operationInputs
export const operationKinds = Object.keys(operationInputs) as OperationKind[]
export const OperationKind = z.enum(operationKinds as [OperationKind, ...OperationKind[]])
export type OperationInput<K extends OperationKind> = z.infer<(typeof operationInputs)[K]>

/** The words a person reads for a kind. */
export const operationTitles: Record<OperationKind, string> = {
  'create-instance': 'Create instance',
  'start-instance': 'Start instance',
  'stop-instance': 'Stop instance',
  'restart-instance': 'Restart instance',
  'reload-instance': 'Reload settings',
  'separate-instance': 'Separate instance',
  'adopt-instance': 'Adopt instance',
  'delete-instance': 'Delete instance',
  'change-settings': 'Change settings',
  'resolve-drift': 'Resolve drift of settings',
  'create-standby': 'Create standby',
  'remove-standby': 'Remove standby',
  'rejoin-standby': 'Rejoin standby',
  'drop-kept-aside': 'Drop what was kept aside',
  'promote-standby': 'Promote standby',
  'switchover-cluster': 'Switchover',
  'failover-cluster': 'Failover',
  'change-synchronous': 'Change synchronous replication',
  'change-automatic': 'Change automatic failover',
  'change-commit-mode': 'Change commit mode',
  'change-cluster-settings': 'Change settings of a cluster',
  'change-page-repair': 'Change page repair',
  'renew-roles': 'Renew roles of members',
  'require-tls': 'Require TLS',
  'fence-instance': 'Fence instance',
}

/** A stage of a long operation as its page lists it before anything is done. Names are those of the operation's steps. */
export type OperationStage = { name: string; title: string; clientsCanWrite: boolean }

/** The steps of the operations that interrupt clients, and during which of them clients can write. */
export const operationStages = {
  'switchover-cluster': [
    { name: 'check', title: 'Check the standby that takes over', clientsCanWrite: true },
    { name: 'prepare', title: 'Give the primary a role to come back with', clientsCanWrite: true },
    { name: 'admit', title: 'Admit that role', clientsCanWrite: true },
    { name: 'slots', title: 'Keep WAL for the other members on the new primary', clientsCanWrite: true },
    { name: 'checkpoint', title: 'Write a checkpoint on the primary', clientsCanWrite: true },
    { name: 'demote', title: 'Stop the primary; its last WAL reaches the standbys', clientsCanWrite: false },
    { name: 'promote', title: 'Promote the standby', clientsCanWrite: false },
    { name: 'rejoin', title: 'Let the other members follow the new primary', clientsCanWrite: true },
    { name: 'synchronous', title: 'Set the synchronous standbys', clientsCanWrite: true },
    { name: 'tidy', title: 'Drop the slots of the former primary', clientsCanWrite: true },
    { name: 'observe', title: 'See all members follow', clientsCanWrite: true },
    { name: 'repair', title: 'Let members take torn pages from each other', clientsCanWrite: true },
  ],
  'failover-cluster': [
    { name: 'check', title: 'Check the standby that takes over', clientsCanWrite: false },
    { name: 'fence', title: 'Fence the former primary', clientsCanWrite: false },
    { name: 'isolate', title: 'Let no standby receive any more WAL', clientsCanWrite: false },
    { name: 'verify', title: 'Compare what the standbys hold', clientsCanWrite: false },
    { name: 'slots', title: 'Keep WAL for the other members on the new primary', clientsCanWrite: false },
    { name: 'promote', title: 'Promote the standby', clientsCanWrite: false },
    { name: 'repoint', title: 'Let the other standbys follow the new primary', clientsCanWrite: true },
    { name: 'synchronous', title: 'Set the synchronous standbys', clientsCanWrite: true },
    { name: 'observe', title: 'See all standbys follow', clientsCanWrite: true },
    { name: 'repair', title: 'Let members take torn pages from each other', clientsCanWrite: true },
  ],
} as const satisfies Partial<Record<OperationKind, readonly OperationStage[]>>

/**
 * The step from whose start on an operation goes through: a cancel is refused then, unless the step is overdue. Before it
 * a cancel takes everything back.
 */
export const pointsOfNoReturn: Partial<Record<OperationKind, string>> = {
  'switchover-cluster': 'promote',
  'failover-cluster': 'promote',
  'promote-standby': 'promote',
  // each later step ends by itself, and knows better what is to be put back
  'renew-roles': 'admit',
}
