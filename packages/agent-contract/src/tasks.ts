import {
  CommitMode,
  InstanceId,
  InstanceName,
  Lsn,
  ScramVerifier,
  SettingChange,
  SettingImpact,
  StopMode,
} from '@floe/domain'
import { z } from 'zod'

/**
 * Where a standby gets its WAL: another member of its cluster, the slot kept for it there, and the role it comes as. Its
 * password never leaves the standby's host; the upstream knows a verifier of it.
 */
export const Upstream = z.object({
  host: z.string(),
  port: z.number().int(),
  slot: z.string(),
  role: z.string(),
  /** Every copy has the same; a copy of another system is refused. */
  systemIdentifier: z.string().nullable(),
  /** `18.6`; another major version is refused. */
  engineVersion: z.string().nullable(),
  /** Size of all its databases, to know before whether a copy fits; null while unknown. */
  sizeBytes: z.number().nullable(),
})
export type Upstream = z.infer<typeof Upstream>

/**
 * Everything the console may ask a host to do. Each is idempotent by its key and safe to run twice; none reports success
 * before the outcome was seen (running means it answers SQL).
 */
export const TaskInput = z.discriminatedUnion('kind', [
  /** initdb with data checksums, assign a port, write the managed settings. Does not start it. */
  z.object({
    kind: z.literal('create-instance'),
    instanceId: InstanceId,
    name: InstanceName,
    settings: z.record(z.string(), z.string()),
    /**
     * SCRAM-SHA-256 verifier of the password of role `postgres` (scramVerifier()); null leaves that role without a
     * password, so that only those whom the person lets in otherwise can connect.
     */
    ownerPasswordVerifier: ScramVerifier.nullable().default(null),
  }),
  z.object({ kind: z.literal('start-instance'), instanceId: InstanceId }),
  /**
   * A stop with mode immediate is also taken while another task is stopping the instance: it hastens that stop. After
   * `deadlineMs` (10 minutes when left out) it fails; the engine goes on stopping.
   */
  z.object({
    kind: z.literal('stop-instance'),
    instanceId: InstanceId,
    mode: StopMode,
    deadlineMs: z.number().int().positive().max(3_600_000).optional(),
  }),
  z.object({
    kind: z.literal('restart-instance'),
    instanceId: InstanceId,
    mode: StopMode,
    /** Only where a setting waits for it, or the instance does not run. */
    ifPending: z.boolean().optional(),
  }),
  z.object({ kind: z.literal('reload-instance'), instanceId: InstanceId }),
  /** Stops it (immediate if need be) and removes its directory, or renames it when keepFiles. Refused unless confirmName is its name. */
  z.object({
    kind: z.literal('delete-instance'),
    instanceId: InstanceId,
    confirmName: z.string(),
    keepFiles: z.boolean(),
  }),
  /**
   * What files say otherwise than Floe left them is kept (`adopt`: what ALTER SYSTEM set moves into the managed file) or
   * put back (`revert`).
   */
  z.object({
    kind: z.literal('resolve-drift'),
    instanceId: InstanceId,
    how: z.enum(['adopt', 'revert']),
  }),
  /** Checked by the binary, written to the managed file, reloaded, read back. Nothing changes when one of them is refused. */
  z.object({
    kind: z.literal('change-settings'),
    instanceId: InstanceId,
    changes: z.array(SettingChange).min(1),
  }),
  /** Registers an instance that is to be a copy, gives it a port and a password to replicate with. Makes no files. */
  z.object({ kind: z.literal('prepare-standby'), instanceId: InstanceId, name: InstanceName }),
  /**
   * On a primary: makes what a standby needs there. Its role with the verifier (not on a standby, where roles cannot be
   * made), its line in pg_hba.conf, its slot. Answers how to reach it.
   */
  z.object({
    kind: z.literal('admit-standby'),
    instanceId: InstanceId,
    standbyName: InstanceName,
    verifier: ScramVerifier.nullable(),
    slot: z.boolean(),
  }),
  /** Removes what admit-standby made; what is not there is no error. `keepRole` where the member only loses its slot. */
  z.object({
    kind: z.literal('dismiss-standby'),
    instanceId: InstanceId,
    standbyName: InstanceName,
    keepRole: z.boolean(),
  }),
  /**
   * Copies the upstream with pg_basebackup. Beside the data directory, which it replaces at the end by a rename, so that a
   * run that fails or is killed leaves nothing; starting it again starts anew. An existing one is only replaced when asked.
   */
  z.object({
    kind: z.literal('clone-standby'),
    instanceId: InstanceId,
    upstream: Upstream,
    replace: z.boolean(),
  }),
  /** Gives up a copy that was never finished: registration and files, unless it has a data directory. */
  z.object({ kind: z.literal('forget-standby'), instanceId: InstanceId }),
  /** Takes a stopped member back to where it left the upstream's history, with pg_rewind; it can then follow the upstream. */
  z.object({ kind: z.literal('rewind-instance'), instanceId: InstanceId, upstream: Upstream }),
  z.object({ kind: z.literal('checkpoint-instance'), instanceId: InstanceId }),
  /**
   * A primary becomes a standby that is stopped: marked and its upstream written before it is stopped, so that from the
   * first moment on nobody can start it as a primary, not even by hand.
   */
  z.object({ kind: z.literal('demote-instance'), instanceId: InstanceId, upstream: Upstream }),
  /** Takes a demotion back and starts it as the primary it was. Only while no other was promoted. */
  z.object({ kind: z.literal('restore-primary'), instanceId: InstanceId }),
  /** Ends an instance at once and keeps it from running as a primary until it is rejoined. */
  z.object({
    kind: z.literal('fence-instance'),
    instanceId: InstanceId,
    reason: z.string().max(200),
  }),
  /** Starts a stopped member as a standby of the upstream and waits until it streams. A fence ends with it. */
  z.object({ kind: z.literal('follow-upstream'), instanceId: InstanceId, upstream: Upstream }),
  /** A standby stops receiving WAL; what it had received is on its disk when this has succeeded. */
  z.object({ kind: z.literal('isolate-standby'), instanceId: InstanceId }),
  /** A running standby gets its WAL from another member from now on. */
  z.object({
    kind: z.literal('repoint-standby'),
    instanceId: InstanceId,
    upstream: Upstream,
    /** Wait until it streams. */
    wait: z.boolean(),
  }),
  /**
   * A standby becomes a primary. Refused when it has not replayed past `beyondLsn`, or has less than `atLeastLsn`.
   * `standbyNames` is its synchronous_standby_names from its first commit on.
   */
  z.object({
    kind: z.literal('promote-instance'),
    instanceId: InstanceId,
    beyondLsn: Lsn.nullable(),
    atLeastLsn: Lsn.nullable(),
    standbyNames: z.string().max(1_000),
  }),
  /** Writes synchronous_standby_names and sees it in force. */
  z.object({
    kind: z.literal('set-synchronous'),
    instanceId: InstanceId,
    standbyNames: z.string().max(1_000),
  }),
  /** What changes would do, by the instance's own binary; fails with the first refusal. Changes nothing. */
  z.object({
    kind: z.literal('check-settings'),
    instanceId: InstanceId,
    changes: z.array(SettingChange).min(1),
  }),
  /**
   * On a standby: waits until its primary's WAL, as far as it has replayed it, asks for no more than these values (by
   * setting), and makes a restartpoint, so that it never again begins before that. At most 10 minutes.
   */
  z.object({
    kind: z.literal('await-settings'),
    instanceId: InstanceId,
    atMost: z.record(z.string(), z.number()),
  }),
  /** Reads back, over a new connection, that changes are in force; fails where one is not. */
  z.object({
    kind: z.literal('confirm-settings'),
    instanceId: InstanceId,
    changes: z.array(SettingChange).min(1),
    /** A value that waits for a restart is as good as one in force. */
    pendingAllowed: z.boolean(),
  }),
  /** Sees to a password that the member asks for pages with; it stays on its host. */
  z.object({ kind: z.literal('prepare-page-repair'), instanceId: InstanceId }),
  /**
   * On a primary: the extension page_repair in database postgres, and for each member a role that may read pages and do
   * nothing else. A role whose verifier is null stays as it is; roles of others are dropped.
   */
  z.object({
    kind: z.literal('admit-page-repair'),
    instanceId: InstanceId,
    members: z.array(z.object({ name: InstanceName, verifier: ScramVerifier.nullable() })).max(100),
  }),
  /**
   * Whom this member takes pages from, and who may ask it (lines of pg_hba.conf). A member that is stopped takes both when
   * it starts.
   */
  z.object({
    kind: z.literal('set-page-repair-sources'),
    instanceId: InstanceId,
    sources: z.array(z.object({ name: z.string(), host: z.string(), port: z.number().int() })).max(8),
    members: z.array(InstanceName).max(100),
  }),
  /** ALTER DATABASE / ROLE … SET synchronous_commit; null resets it. */
  z.object({
    kind: z.literal('set-commit-mode'),
    instanceId: InstanceId,
    database: z.string().nullable(),
    role: z.string().nullable(),
    commitMode: CommitMode.nullable(),
  }),
])
export type TaskInput = z.infer<typeof TaskInput>
export type TaskKind = TaskInput['kind']

/** A setting as the instance itself told it, before and after. */
const ConfirmedSetting = z.object({
  name: z.string(),
  oldValue: z.string().nullable(),
  /** As SHOW prints it after the reload; where a restart is pending, still the old one. */
  newValue: z.string().nullable(),
  pendingRestart: z.boolean(),
})
/** The managed file as name → value, so that it can be gone back to. */
const ManagedSettings = z.record(z.string(), z.string())

/** What a task answers when it succeeded. */
export const taskResults = {
  'create-instance': z.object({
    port: z.number().int(),
    directory: z.string(),
    managed: ManagedSettings.optional(),
  }),
  'start-instance': z.object({ postmasterPid: z.number().int(), readyMs: z.number() }),
  'stop-instance': z.object({ stoppedMs: z.number() }),
  'restart-instance': z.object({
    postmasterPid: z.number().int(),
    readyMs: z.number(),
    /** False where no setting waited for it and it was left running. */
    restarted: z.boolean().optional(),
    /** The engine did not start with what was changed since its last start; it was put back and it runs with that. */
    rolledBack: z
      .object({
        /** `line 3 of floe.conf: …`, where it could be told. */
        line: z.string().nullable(),
        /** What the engine said. */
        reason: z.string(),
        confirmed: z.array(ConfirmedSetting),
        managed: ManagedSettings,
      })
      .optional(),
  }),
  'reload-instance': z.object({ pendingRestart: z.array(z.string()) }),
  'delete-instance': z.object({ removed: z.boolean(), keptDirectory: z.string().nullable() }),
  'change-settings': z.object({
    confirmed: z.array(ConfirmedSetting),
    managedBefore: ManagedSettings.optional(),
    managed: ManagedSettings.optional(),
  }),
  'prepare-standby': z.object({
    port: z.number().int(),
    directory: z.string(),
    engineVersion: z.string(),
    /** Of the password that it replicates with. */
    replicationVerifier: ScramVerifier,
  }),
  'admit-standby': z.object({ upstream: Upstream }),
  'dismiss-standby': z.object({ droppedSlot: z.boolean() }),
  'clone-standby': z.object({
    bytes: z.number(),
    copyMs: z.number(),
    /** `kept`: a run that was killed at its very end had finished the copy. */
    method: z.enum(['basebackup', 'reflink', 'kept']),
  }),
  'forget-standby': z.object({ forgotten: z.boolean() }),
  /** `refused`: why pg_rewind may not or could not. The instance is then to be copied anew. */
  'rewind-instance': z.object({ rewound: z.boolean(), refused: z.string().nullable() }),
  'checkpoint-instance': z.object({ checkpointMs: z.number() }),
  /** Position of the shutdown checkpoint: whoever replayed past it has everything. */
  'demote-instance': z.object({ shutdownLsn: Lsn, stoppedMs: z.number() }),
  'restore-primary': z.object({ postmasterPid: z.number().int() }),
  /** End of its WAL on disk, where that could be read. */
  'fence-instance': z.object({ endLsn: Lsn.nullable(), wasRunning: z.boolean() }),
  'follow-upstream': z.object({ postmasterPid: z.number().int(), streamingMs: z.number() }),
  'isolate-standby': z.object({
    endLsn: Lsn.nullable(),
    replayedLsn: Lsn.nullable(),
    timeline: z.number().int().nullable(),
  }),
  'repoint-standby': z.object({ streaming: z.boolean() }),
  'promote-instance': z.object({
    timeline: z.number().int(),
    promoteMs: z.number(),
    /** Where it stopped replaying. */
    endLsn: Lsn.nullable(),
  }),
  'set-synchronous': z.object({ standbyNames: z.string() }),
  'prepare-page-repair': z.object({ repairVerifier: ScramVerifier }),
  'admit-page-repair': z.object({ dropped: z.number().int() }),
  'set-page-repair-sources': z.object({
    /** False where it did not run and takes them when it starts. */
    inForce: z.boolean(),
  }),
  'set-commit-mode': z.object({ commitMode: CommitMode.nullable() }),
  'check-settings': z.object({
    checked: z.array(
      z.object({
        name: z.string(),
        impact: SettingImpact,
        /** As SHOW prints what holds now. */
        oldValue: z.string().nullable(),
        /** Of a setting that standbys may not have smaller: what it runs with, and what the change would make of it. */
        oldNumber: z.number().nullable(),
        newNumber: z.number().nullable(),
      }),
    ),
    managed: ManagedSettings,
    /** Waiting for a restart already; the next one brings them too. */
    pendingRestart: z.array(z.string()),
  }),
  'await-settings': z.object({ asked: z.record(z.string(), z.number()) }),
  'confirm-settings': z.object({
    confirmed: z.array(
      z.object({ name: z.string(), newValue: z.string().nullable(), pendingRestart: z.boolean() }),
    ),
    managed: ManagedSettings,
  }),
  'resolve-drift': z.object({ confirmed: z.array(ConfirmedSetting), managed: ManagedSettings }),
} as const satisfies Record<TaskKind, z.ZodType>
export type TaskResult<K extends TaskKind> = z.infer<(typeof taskResults)[K]>
