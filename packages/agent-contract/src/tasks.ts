import {
  CommitMode,
  CommitModeScope,
  DatabaseName,
  Fault,
  InstanceId,
  InstanceName,
  KeptAside,
  KeptAsideName,
  Lsn,
  MemberLogin,
  MemberLogins,
  MemberRole,
  PrimaryTold,
  Reindexed,
  ScramVerifier,
  SettingChange,
  SettingImpact,
  StopMode,
  TimelineEnd,
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

/** Roles of the cluster's members, and of nobody else, that pg_hba.conf is to let in. Left out by older consoles. */
const MemberRoles = z.array(MemberLogin).max(200).optional()

/**
 * The primary of the cluster as it is recorded, where no promotion is open. The member of an automatic cluster that is told
 * of starts as a primary only by such an order that names it (`instance.held_back`). Since contract 1.12.
 */
const AsPrimary = PrimaryTold.optional()

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
  z.object({ kind: z.literal('start-instance'), instanceId: InstanceId, primary: AsPrimary }),
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
    primary: AsPrimary,
  }),
  z.object({ kind: z.literal('reload-instance'), instanceId: InstanceId }),
  /** Gives an instance that shares a user with others one of its own; one that runs is restarted. Refused without root. */
  z.object({ kind: z.literal('separate-instance'), instanceId: InstanceId, primary: AsPrimary }),
  /**
   * Registers an instance again whose directory lies on the host, and whose registration the agent has lost, and takes over
   * its postmaster where one runs. Changes nothing unless all of it fits: the directory is the one that the instance would
   * have, its owner a user that it may have, its system identifier and its port the recorded ones. Does not start or stop
   * it. Done already where it is registered by this name. Since contract 1.13.
   */
  z.object({
    kind: z.literal('adopt-instance'),
    instanceId: InstanceId,
    name: InstanceName,
    /** As the console has them recorded. */
    port: z.number().int().min(1).max(65_535),
    systemIdentifier: z.string(),
    /** What it is meant to be; one that is not meant to be the primary never starts as one before it was rejoined. */
    memberRole: MemberRole,
    /** Whether it has its cluster for itself. */
    alone: z.boolean(),
    logins: MemberLogins.nullable(),
    roles: z.array(MemberLogin).max(200),
    /** Left out while it is not known. */
    primary: PrimaryTold.optional(),
    /**
     * It is registered by this name, and only the console did not know it: it gets `name`. Refused (`instance.is_standby`,
     * `instance.fenced`) where it has, or had, another primary.
     */
    formerName: InstanceName.optional(),
  }),
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
  /** Registers an instance that is to be a copy, gives it a port, a role and a password to replicate with. Makes no files. */
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
    /** The standby's role, as prepare-standby answered it; the one computed from its name where left out. */
    role: MemberLogin.optional(),
    roles: MemberRoles,
  }),
  /** Removes what admit-standby made; what is not there is no error. `keepRole` where the member only loses its slot. */
  z.object({
    kind: z.literal('dismiss-standby'),
    instanceId: InstanceId,
    standbyName: InstanceName,
    keepRole: z.boolean(),
    role: MemberLogin.optional(),
    roles: MemberRoles,
  }),
  /**
   * Makes up the role that a member of an earlier version is to replicate as instead of the one that anybody could foresee.
   * It goes on as that one until `replicate-as`. Since contract 1.9, as the next three.
   */
  z.object({ kind: z.literal('prepare-role'), instanceId: InstanceId }),
  /** On a primary: roles that members are to replicate as, beside those they have. `roles` are both, for pg_hba.conf. */
  z.object({
    kind: z.literal('admit-roles'),
    instanceId: InstanceId,
    logins: z.array(z.object({ role: MemberLogin, verifier: ScramVerifier })).max(100),
    roles: z.array(MemberLogin).max(200),
  }),
  /**
   * A standby replicates as the upstream's role from now on, without a restart, and is seen to stream so. Where it does not
   * it goes back to `former`, and the task fails. A member that follows nobody notes the role.
   */
  z.object({
    kind: z.literal('replicate-as'),
    instanceId: InstanceId,
    upstream: Upstream,
    former: MemberLogin,
  }),
  /**
   * On a primary: takes roles away, with what they were granted, and ends their sessions. One whose member streams goes only
   * once that member is seen streaming as another role. Roles that Floe gave rights and that are not among those that stay go too.
   */
  z.object({
    kind: z.literal('retire-roles'),
    instanceId: InstanceId,
    retired: z
      .array(
        z.object({
          role: MemberLogin,
          /** The standby that has to be seen streaming as its new role; null where none streams. */
          successor: z.object({ name: InstanceName, role: MemberLogin }).nullable(),
        }),
      )
      .max(200),
    /** Those that stay, for pg_hba.conf. */
    roles: z.array(MemberLogin).max(200),
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
  z.object({
    kind: z.literal('rewind-instance'),
    instanceId: InstanceId,
    upstream: Upstream,
    /** What `keep-aside` has kept of it, for a rejoin that finds this one cut short. Since contract 1.13. */
    keptAside: KeptAsideName.nullish(),
  }),
  /**
   * Of a stopped member that is to be rewound or copied anew: the WAL that only it has is copied aside, synced and counted.
   * Fails where that cannot be done, and nothing is taken back then. With `discard` it is counted only. Since contract 1.13.
   */
  z.object({
    kind: z.literal('keep-aside'),
    instanceId: InstanceId,
    upstream: Upstream,
    /** Name of the upstream. */
    primary: InstanceName,
    discard: z.boolean(),
  }),
  /** Removes what was kept aside; what is not there is no error. Since contract 1.13. */
  z.object({ kind: z.literal('drop-kept-aside'), instanceId: InstanceId, name: KeptAsideName }),
  z.object({ kind: z.literal('checkpoint-instance'), instanceId: InstanceId }),
  /**
   * A primary becomes a standby that is stopped: marked and its upstream written before it is stopped, so that from the
   * first moment on nobody can start it as a primary, not even by hand. With `candidate`, the role that the standby which
   * takes over comes as, connections of other receivers of WAL that have fallen silent are ended before, because the stop
   * would wait for them; where the candidate is silent nothing is stopped (`demote.candidate_silent`). Since contract 1.11.
   */
  z.object({
    kind: z.literal('demote-instance'),
    instanceId: InstanceId,
    upstream: Upstream,
    candidate: MemberLogin.optional(),
  }),
  /** Takes a demotion back and starts it as the primary it was. Only while no other was promoted. */
  z.object({ kind: z.literal('restore-primary'), instanceId: InstanceId, primary: AsPrimary }),
  /** The agent keeps who is the primary of a member's cluster, and whether the member is held back. Since contract 1.12. */
  z.object({ kind: z.literal('keep-primary'), instanceId: InstanceId, primary: PrimaryTold }),
  /**
   * Writes polar_commit_floor and wal_receiver_timeout as the cluster wants them, and sees them in force; null takes them
   * away. An engine that does not run takes them when it starts. Since contract 1.12.
   */
  z.object({
    kind: z.literal('set-commit-floor'),
    instanceId: InstanceId,
    commitFloor: CommitMode.nullable(),
    receiverTimeoutMs: z.number().int().positive().max(600_000).nullable(),
  }),
  /**
   * Ends every process of an instance and keeps it from running as a primary until it is rejoined; has succeeded only once
   * a look finds none. An instance on a newer timeline than `timeline` is left alone and refused (`fence.newer_timeline`):
   * it was promoted after what the order is about. Null or left out: whichever it is on. Since contract 1.9.
   */
  z.object({
    kind: z.literal('fence-instance'),
    instanceId: InstanceId,
    reason: z.string().max(200),
    timeline: z.number().int().positive().nullable().optional(),
  }),
  /** Starts a stopped member as a standby of the upstream and waits until it streams. A fence ends with it. */
  z.object({
    kind: z.literal('follow-upstream'),
    instanceId: InstanceId,
    upstream: Upstream,
    /** The primary of its cluster, for the agent to keep where it is the newest it was told of. Since contract 1.11. */
    primary: PrimaryTold.optional(),
  }),
  /** A standby stops receiving WAL; what it had received is on its disk when this has succeeded. */
  z.object({ kind: z.literal('isolate-standby'), instanceId: InstanceId }),
  /** A running standby gets its WAL from another member from now on. */
  z.object({
    kind: z.literal('repoint-standby'),
    instanceId: InstanceId,
    upstream: Upstream,
    /** Wait until it streams. */
    wait: z.boolean(),
    /** As in follow-upstream. Since contract 1.11. */
    primary: PrimaryTold.optional(),
  }),
  /**
   * A standby becomes a primary. Refused when it has not replayed past `beyondLsn`, or has less than `atLeastLsn`.
   * `standbyNames` is its synchronous_standby_names from its first commit on. A failure with `promote.not_begun` (since
   * contract 1.11) says that this task has not told the engine to promote itself, and will not.
   */
  z.object({
    kind: z.literal('promote-instance'),
    instanceId: InstanceId,
    beyondLsn: Lsn.nullable(),
    atLeastLsn: Lsn.nullable(),
    standbyNames: z.string().max(1_000),
    /** It becomes the primary of its cluster, and not of one of its own: the agent keeps that. Since contract 1.11. */
    ofCluster: z.boolean().optional(),
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
   * What changes would do, one by one, by the instance's own binary, which is started on a throw-away directory. Changes
   * nothing, and runs beside other tasks of the instance. Since contract 1.8.
   */
  z.object({
    kind: z.literal('try-settings'),
    instanceId: InstanceId,
    changes: z.array(SettingChange).min(1).max(100),
    /** The primary takes them first: what its WAL asks of a standby now is not held against them. */
    acrossCluster: z.boolean(),
  }),
  /** The same for an instance that is not there yet; its id is of nobody. */
  z.object({
    kind: z.literal('try-new-settings'),
    instanceId: InstanceId,
    changes: z.array(SettingChange).min(1).max(100),
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
    members: z
      .array(
        z.object({
          name: InstanceName,
          verifier: ScramVerifier.nullable(),
          /** As prepare-page-repair answered it; the one computed from its name where left out. */
          role: MemberLogin.optional(),
        }),
      )
      .max(100),
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
    roles: MemberRoles,
  }),
  /**
   * The lines of pg_hba.conf that Floe wrote let clients on other hosts in over TLS only from now on. Refused where a person
   * changed them, or where another line lets such clients in without TLS.
   */
  z.object({ kind: z.literal('require-tls'), instanceId: InstanceId }),
  /** Rebuilds the indexes of a database one after the other, beside readers and writers. Since contract 1.14. */
  z.object({ kind: z.literal('reindex-database'), instanceId: InstanceId, database: DatabaseName }),
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
/** What each change would do, or why it is refused, said by the binary. Nothing was changed. */
export const TriedSettings = z.object({
  results: z.array(
    z.object({
      name: z.string(),
      oldValue: z.string().nullable(),
      newValue: z.string().nullable(),
      impact: z.enum(['read-only', 'restart', 'reload', 'new-connections']),
      fault: Fault.nullable(),
      /** Of a setting that standbys may not have smaller: what it runs with, and what the change would make of it. */
      oldNumber: z.number().nullable().optional(),
      newNumber: z.number().nullable().optional(),
    }),
  ),
})
export type TriedSettings = z.infer<typeof TriedSettings>

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
  'separate-instance': z.object({
    /** Of the operating system. */
    user: z.string(),
    restarted: z.boolean(),
    /** How long it was stopped for, without its start. */
    stoppedMs: z.number(),
  }),
  'adopt-instance': z.object({
    /** Of the postmaster that was taken over; null where none runs. */
    postmasterPid: z.number().int().nullable(),
    port: z.number().int(),
    directory: z.string(),
    /** What the registration held and nothing tells any more: what it is, and what to do about it. */
    lost: z.array(z.object({ what: z.string(), hint: z.string() })),
  }),
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
    /** The role that it replicates as. Left out by older agents: the one computed from its name. */
    replicationRole: MemberLogin.optional(),
  }),
  'admit-standby': z.object({ upstream: Upstream }),
  'dismiss-standby': z.object({ droppedSlot: z.boolean() }),
  /** `former` is null where its role is one that nobody foresees already, and `role` where it has none. */
  'prepare-role': z.object({
    role: MemberLogin.nullable(),
    former: MemberLogin.nullable(),
    verifier: ScramVerifier.nullable(),
  }),
  'admit-roles': z.object({}),
  /** False where it follows nobody now, or is stopped and takes the role when it starts. */
  'replicate-as': z.object({ streaming: z.boolean() }),
  /** Those that were not there are neither; `kept` is still in use, and in pg_hba.conf. */
  'retire-roles': z.object({ retired: z.array(MemberLogin), kept: z.array(MemberLogin) }),
  'clone-standby': z.object({
    bytes: z.number(),
    copyMs: z.number(),
    /** `kept`: a run that was killed at its very end had finished the copy. */
    method: z.enum(['basebackup', 'reflink', 'kept']),
  }),
  'forget-standby': z.object({ forgotten: z.boolean() }),
  /** `refused`: why pg_rewind may not or could not. The instance is then to be copied anew. */
  'rewind-instance': z.object({ rewound: z.boolean(), refused: z.string().nullable() }),
  'keep-aside': z.object({
    /** Bytes of WAL that only it had, and transactions that committed in them; null where unknown, 0 where it had none. */
    ownBytes: z.number().nullable(),
    ownCommits: z.number().int().nullable(),
    keptAside: KeptAside.nullable(),
    /** It had some and, as was asked, nothing was kept. */
    discarded: z.boolean(),
  }),
  'drop-kept-aside': z.object({ dropped: z.boolean() }),
  'checkpoint-instance': z.object({ checkpointMs: z.number() }),
  /** Position of the shutdown checkpoint: whoever replayed past it has everything. */
  'demote-instance': z.object({ shutdownLsn: Lsn, stoppedMs: z.number() }),
  'restore-primary': z.object({ postmasterPid: z.number().int() }),
  /** End of its WAL on disk, where that could be read. */
  'fence-instance': z.object({
    endLsn: Lsn.nullable(),
    wasRunning: z.boolean(),
    /** The timeline of that, and where those before it ended; null where they could not be read. Since contract 1.10. */
    timeline: z.number().int().nullish(),
    ancestors: z.array(TimelineEnd).nullish(),
  }),
  'follow-upstream': z.object({ postmasterPid: z.number().int(), streamingMs: z.number() }),
  'isolate-standby': z.object({
    /** End of its WAL on disk, whether it has received any since its start or not. */
    endLsn: Lsn.nullable(),
    replayedLsn: Lsn.nullable(),
    timeline: z.number().int().nullable(),
    /** Where the timelines before that one ended; null where that is unknown. Since contract 1.10. */
    ancestors: z.array(TimelineEnd).nullish(),
    /** False of one that was promoted: it accepts writes. Since contract 1.10. */
    inRecovery: z.boolean().optional(),
  }),
  'repoint-standby': z.object({ streaming: z.boolean() }),
  'promote-instance': z.object({
    timeline: z.number().int(),
    promoteMs: z.number(),
    /** Where it stopped replaying. */
    endLsn: Lsn.nullable(),
    /** Where the timelines before its own ended. Since contract 1.10. */
    ancestors: z.array(TimelineEnd).nullish(),
    /**
     * Its synchronous_standby_names from its first commit on; null where it was the primary already, and may have had
     * others before, or where others are in force than were asked for. Since contract 1.10.
     */
    standbyNames: z.string().nullish(),
    /** What new sessions commit with, and databases and roles, by its own answer once it was promoted. Since contract 1.10. */
    synchronousCommit: z.string().nullish(),
    commitModes: z.array(CommitModeScope).nullish(),
    /** Its polar_commit_floor. Since contract 1.12. */
    commitFloor: z.string().nullish(),
  }),
  'set-synchronous': z.object({ standbyNames: z.string() }),
  'keep-primary': z.object({}),
  /** False where it did not run and takes it when it starts. */
  'set-commit-floor': z.object({ inForce: z.boolean() }),
  'prepare-page-repair': z.object({
    repairVerifier: ScramVerifier,
    /** The role that it asks as. Left out by older agents: the one computed from its name. */
    repairRole: MemberLogin.optional(),
  }),
  'admit-page-repair': z.object({ dropped: z.number().int() }),
  'set-page-repair-sources': z.object({
    /** False where it did not run and takes them when it starts. */
    inForce: z.boolean(),
  }),
  /** Sessions that were open without TLS stay; `changed` is false where the lines were so already. */
  'reindex-database': Reindexed,
  'require-tls': z.object({ changed: z.boolean(), sessionsWithoutTls: z.number().int() }),
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
  'try-settings': TriedSettings,
  'try-new-settings': TriedSettings,
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
