import {
  BlockAddress,
  CatalogName,
  CheckedSetting,
  COPIED_SEGMENTS_MAX,
  COPY_RECORD_BYTES,
  CommitMode,
  CommitModeScope,
  ConfirmedSetting,
  DatabaseName,
  EngineBuild,
  FlashbackCounts,
  FlashbackMade,
  FlashbackMerged,
  FlashbackSwapped,
  FlashbackTime,
  HostCheck,
  HostDirectory,
  HostPackage,
  HostPackageList,
  HostPackages,
  InstanceId,
  InstanceLimits,
  InstanceName,
  KeptAside,
  KeptAsideName,
  LimitChanges,
  LimitsObserved,
  Lsn,
  MemberLogin,
  MemberLogins,
  MemberRole,
  MergeCounts,
  OperationId,
  PACKAGE_BYTES_MAX,
  PACKAGE_PIECE_BYTES,
  PIECE_BLOCKS_MAX,
  PIECE_WAL_BYTES,
  PrimaryTold,
  QualifiedName,
  Reindexed,
  RestoredPages,
  RestoredTable,
  ResultName,
  RoleName,
  RowCondition,
  roleToChange,
  roleToCreate,
  ScramVerifier,
  SettingChange,
  STALL_AFTER_LEAST_MS,
  StallLengthSet,
  StopMode,
  TableName,
  TableOid,
  TimelineEnd,
  TORN_BLOCKS_MAX,
  TornList,
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

/** What each change would do, or why it is refused, said by the binary. Nothing was changed. */
export const TriedSettings = z.object({
  results: z.array(
    // agents of an early version do not report the numbers
    CheckedSetting.partial({ oldNumber: true, newNumber: true }),
  ),
})
export type TriedSettings = z.infer<typeof TriedSettings>

/** The managed file as name → value, so that it can be gone back to. */
const ManagedSettings = z.record(z.string(), z.string())

/** A table of a database, and one that a flashback made, each with the name under which the person saw it. */
const ofTable = { instanceId: InstanceId, database: DatabaseName, table: TableOid }
const ofResult = {
  instanceId: InstanceId,
  database: DatabaseName,
  result: TableOid,
  resultName: TableName,
}

const uint32 = z.number().int().min(0).max(0xffff_ffff)

/** Bytes in base64, and the CRC-32 of the bytes: the one who receives them checks it. */
const Piece = { data: z.string().max(Math.ceil(PIECE_WAL_BYTES / 3) * 4), crc32: uint32 }

/** A stretch of a segment of WAL, by numbers: the name of the file follows from them. */
const WalStretch = {
  timeline: uint32.min(1),
  segment: z
    .number()
    .int()
    .min(0)
    .max(2 ** 44),
  offset: z
    .number()
    .int()
    .min(0)
    .max(2 ** 30),
}

/** Made when somebody first asks for it: hundreds of schemas that most agents never need would take megabytes of each. */
const once = <T>(make: () => T): (() => T) => {
  let made: { it: T } | undefined
  return () => {
    made ??= { it: make() }
    return made.it
  }
}

/** How the agent runs a task, where that is not the rule: stored before it begins, and one of an instance at a time. */
export type TaskManner = {
  /** It changes nothing, and so neither waits for other tasks of its instance nor holds them up. */
  besideOthers?: true
  /** It may read a whole table: an instance works on `FLASHBACK_READERS_MAX` such at once. */
  readsTables?: true
  /**
   * It begins although there is no room to keep it, because it is what makes room. Nothing is lost by that: a task that a
   * killed agent forgot is started again by the controller under the same key, and may run twice. A file held in reserve would
   * not do instead: the engine that filled the disk takes the room as soon as it is released.
   */
  makesRoom?: true
  /**
   * A piece of a file on its way to or from a host, a moment's work and safe to repeat: pages of users' tables, of which no file
   * of the agent's gets a copy, and packages, of which there would be two. It begins, and ends, unstored; a few that have ended
   * can still be asked for.
   */
  inMemory?: true
}

const task = <Input extends z.core.$ZodLooseShape, Result extends z.ZodType>(
  input: () => Input,
  result: () => Result,
  manner: TaskManner = {},
): TaskManner & { readonly input: Input; readonly result: Result } => {
  const [inputOnce, resultOnce] = [once(input), once(result)]
  return {
    ...manner,
    get input() {
      return inputOnce()
    },
    get result() {
      return resultOnce()
    },
  }
}

/**
 * Everything the console may ask a host to do, one record each: what it is asked with, and what it answers when it succeeded.
 * Each is idempotent by its key and safe to run twice; none reports success before the outcome was seen (running means it
 * answers SQL). A new one begins here: docs/checklists/add-task.md.
 */
export const tasks = {
  /** initdb with data checksums, assign a port, write the managed settings. Does not start it. */
  'create-instance': task(
    () => ({
      instanceId: InstanceId,
      name: InstanceName,
      settings: z.record(z.string(), z.string()),
      /**
       * SCRAM-SHA-256 verifier of the password of role `postgres` (scramVerifier()); null leaves that role without a
       * password, so that only those whom the person lets in otherwise can connect.
       */
      ownerPasswordVerifier: ScramVerifier.nullable().default(null),
    }),
    () =>
      z.object({
        port: z.number().int(),
        directory: z.string(),
        managed: ManagedSettings.optional(),
      }),
  ),
  'start-instance': task(
    () => ({ instanceId: InstanceId, primary: AsPrimary }),
    () => z.object({ postmasterPid: z.number().int(), readyMs: z.number() }),
  ),
  /**
   * A stop with mode immediate is also taken while another task is stopping the instance: it escalates that stop. After
   * `deadlineMs` (10 minutes when left out) it fails; the engine goes on stopping.
   */
  'stop-instance': task(
    () => ({
      instanceId: InstanceId,
      mode: StopMode,
      deadlineMs: z.number().int().positive().max(3_600_000).optional(),
    }),
    () => z.object({ stoppedMs: z.number() }),
    { makesRoom: true },
  ),
  'restart-instance': task(
    () => ({
      instanceId: InstanceId,
      mode: StopMode,
      /** Only where a setting waits for it, or the instance does not run. */
      ifPending: z.boolean().optional(),
      primary: AsPrimary,
    }),
    () =>
      z.object({
        postmasterPid: z.number().int(),
        readyMs: z.number(),
        /** False where no setting waited for it and it was left running. */
        restarted: z.boolean().optional(),
        /** The engine did not start with what was changed since its last start; it was rolled back and it runs with that. */
        rolledBack: z
          .object({
            /** `line 3 of floe.conf: …`, where that is known. */
            line: z.string().nullable(),
            /** What the engine said. */
            reason: z.string(),
            confirmed: z.array(ConfirmedSetting),
            managed: ManagedSettings,
          })
          .optional(),
      }),
  ),
  'reload-instance': task(
    () => ({ instanceId: InstanceId }),
    () => z.object({ pendingRestart: z.array(z.string()) }),
  ),
  /** Gives an instance that shares a user with others one of its own; one that runs is restarted. Refused without root. */
  'separate-instance': task(
    () => ({ instanceId: InstanceId, primary: AsPrimary }),
    () =>
      z.object({
        /** Of the operating system. */
        user: z.string(),
        restarted: z.boolean(),
        /** How long it was stopped for, without its start. */
        stoppedMs: z.number(),
      }),
  ),
  /**
   * Moves an instance that runs onto the installed build of the engine: checked first, stopped, started. One that does not
   * start on it is started on its former build again, and the task fails. Done already where it runs on it. Refused
   * (`engine.not_installed`) where `build` is not the installed one. Since contract 1.25.
   */
  'upgrade-instance': task(
    () => ({ instanceId: InstanceId, build: EngineBuild, primary: AsPrimary }),
    () =>
      z.object({
        /** The build that it was moved from; null where it ran on the installed one already. */
        former: EngineBuild.nullable(),
        postmasterPid: z.number().int(),
        /** How long it was down, from the order to stop until it answered; 0 where it was not stopped. */
        downMs: z.number(),
      }),
  ),
  /**
   * Registers an instance again whose directory lies on the host, and whose registration the agent has lost, and takes over
   * its postmaster where one runs. Changes nothing unless all of it fits: the directory is the one that the instance would
   * have, its owner a user that it may have, its system identifier and its port the recorded ones. Does not start or stop
   * it. Done already where it is registered by this name. Since contract 1.13.
   */
  'adopt-instance': task(
    () => ({
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
    () =>
      z.object({
        /** Of the postmaster that was taken over; null where none runs. */
        postmasterPid: z.number().int().nullable(),
        port: z.number().int(),
        directory: z.string(),
        /** What the registration held and nothing reports any more: what it is, and what to do about it. */
        lost: z.array(z.object({ what: z.string(), hint: z.string() })),
      }),
  ),
  /** Stops it (immediate if need be) and removes its directory, or renames it when keepFiles. Refused unless confirmName is its name. */
  'delete-instance': task(
    () => ({
      instanceId: InstanceId,
      confirmName: z.string(),
      keepFiles: z.boolean(),
    }),
    () => z.object({ removed: z.boolean(), keptDirectory: z.string().nullable() }),
    { makesRoom: true },
  ),
  /**
   * What files say otherwise than Floe left them is kept (`adopt`: what ALTER SYSTEM set moves into the managed file) or
   * put back (`revert`).
   */
  'resolve-drift': task(
    () => ({
      instanceId: InstanceId,
      how: z.enum(['adopt', 'revert']),
    }),
    () => z.object({ confirmed: z.array(ConfirmedSetting), managed: ManagedSettings }),
  ),
  /** Checked by the binary, written to the managed file, reloaded, read back. Nothing changes when one of them is refused. */
  'change-settings': task(
    () => ({
      instanceId: InstanceId,
      changes: z.array(SettingChange).min(1),
    }),
    () =>
      z.object({
        confirmed: z.array(ConfirmedSetting),
        managedBefore: ManagedSettings.optional(),
        managed: ManagedSettings.optional(),
      }),
  ),
  /** Registers an instance that is to be a copy, gives it a port, a role and a password to replicate with. Makes no files. */
  'prepare-standby': task(
    () => ({ instanceId: InstanceId, name: InstanceName }),
    () =>
      z.object({
        port: z.number().int(),
        directory: z.string(),
        engineVersion: z.string(),
        /** Of the password that it replicates with. */
        replicationVerifier: ScramVerifier,
        /** The role that it replicates as. Left out by older agents: the one computed from its name. */
        replicationRole: MemberLogin.optional(),
      }),
  ),
  /**
   * On a primary: makes what a standby needs there. Its role with the verifier (not on a standby, where roles cannot be
   * made), its line in pg_hba.conf, its slot. Answers how to reach it.
   */
  'admit-standby': task(
    () => ({
      instanceId: InstanceId,
      standbyName: InstanceName,
      verifier: ScramVerifier.nullable(),
      slot: z.boolean(),
      /** The standby's role, as prepare-standby answered it; the one computed from its name where left out. */
      role: MemberLogin.optional(),
      roles: MemberRoles,
    }),
    () => z.object({ upstream: Upstream }),
  ),
  /** Removes what admit-standby made; what is not there is no error. `keepRole` where the member only loses its slot. */
  'dismiss-standby': task(
    () => ({
      instanceId: InstanceId,
      standbyName: InstanceName,
      keepRole: z.boolean(),
      role: MemberLogin.optional(),
      roles: MemberRoles,
    }),
    () => z.object({ droppedSlot: z.boolean() }),
  ),
  /**
   * Makes up the role that a member of an earlier version is to replicate as instead of the one that anybody could foresee.
   * It goes on as that one until `replicate-as`. Since contract 1.9, as the next three.
   */
  'prepare-role': task(
    () => ({ instanceId: InstanceId }),
    /** `former` is null where its role is one that nobody foresees already, and `role` where it has none. */
    () =>
      z.object({
        role: MemberLogin.nullable(),
        former: MemberLogin.nullable(),
        verifier: ScramVerifier.nullable(),
      }),
  ),
  /** On a primary: roles that members are to replicate as, beside those they have. `roles` are both, for pg_hba.conf. */
  'admit-roles': task(
    () => ({
      instanceId: InstanceId,
      logins: z.array(z.object({ role: MemberLogin, verifier: ScramVerifier })).max(100),
      roles: z.array(MemberLogin).max(200),
    }),
    () => z.object({}),
  ),
  /**
   * A standby replicates as the upstream's role from now on, without a restart, and is seen to stream so. Where it does not
   * it goes back to `former`, and the task fails. A member that follows nobody notes the role.
   */
  'replicate-as': task(
    () => ({
      instanceId: InstanceId,
      upstream: Upstream,
      former: MemberLogin,
    }),
    /** False where it follows nobody now, or is stopped and takes the role when it starts. */
    () => z.object({ streaming: z.boolean() }),
  ),
  /**
   * On a primary: takes roles away, with what they were granted, and ends their sessions. One whose member streams goes only
   * once that member is seen streaming as another role. Roles that Floe gave rights and that are not among those that stay go too.
   */
  'retire-roles': task(
    () => ({
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
    /** Those that were not there are neither; `kept` is still in use, and in pg_hba.conf. */
    () => z.object({ retired: z.array(MemberLogin), kept: z.array(MemberLogin) }),
  ),
  /**
   * Copies the upstream with pg_basebackup. Beside the data directory, which it replaces at the end by a rename, so
   * that a run that fails or is killed leaves nothing; starting it again starts from zero. An existing one is only
   * replaced when asked.
   */
  'clone-standby': task(
    () => ({
      instanceId: InstanceId,
      upstream: Upstream,
      replace: z.boolean(),
    }),
    () =>
      z.object({
        bytes: z.number(),
        copyMs: z.number(),
        /** `kept`: a run that was killed at its very end had finished the copy. */
        method: z.enum(['basebackup', 'reflink', 'kept']),
      }),
  ),
  /** Gives up a copy that was never finished: registration and files, unless it has a data directory. */
  'forget-standby': task(
    () => ({ instanceId: InstanceId }),
    () => z.object({ forgotten: z.boolean() }),
  ),
  /** Takes a stopped member back to where it left the upstream's history, with pg_rewind; it can then follow the upstream. */
  'rewind-instance': task(
    () => ({
      instanceId: InstanceId,
      upstream: Upstream,
      /** What `keep-aside` has kept of it, for a rejoin that finds this one cut short. Since contract 1.13. */
      keptAside: KeptAsideName.nullish(),
    }),
    /** `refused`: why pg_rewind may not or could not. The instance then needs a new copy. */
    () => z.object({ rewound: z.boolean(), refused: z.string().nullable() }),
  ),
  /**
   * Of a stopped member that is to be rewound or rebuilt: the WAL that only it has is copied aside, synced and counted.
   * Fails where that cannot be done, and nothing is discarded then. With `discard` it is counted only. Since contract
   * 1.13.
   */
  'keep-aside': task(
    () => ({
      instanceId: InstanceId,
      upstream: Upstream,
      /** Name of the upstream. */
      primary: InstanceName,
      discard: z.boolean(),
    }),
    () =>
      z.object({
        /** Bytes of WAL that only it had, and transactions that committed in them; null where unknown, 0 where it had none. */
        ownBytes: z.number().nullable(),
        ownCommits: z.number().int().nullable(),
        keptAside: KeptAside.nullable(),
        /** It had some and, as was asked, nothing was kept. */
        discarded: z.boolean(),
      }),
  ),
  /** Removes what was kept aside; what is not there is no error. Since contract 1.13. */
  'drop-kept-aside': task(
    () => ({ instanceId: InstanceId, name: KeptAsideName }),
    () => z.object({ dropped: z.boolean() }),
  ),
  'checkpoint-instance': task(
    () => ({ instanceId: InstanceId }),
    () => z.object({ checkpointMs: z.number() }),
  ),
  /**
   * A primary becomes a standby that is stopped: marked and its upstream written before it is stopped, so that from the
   * first moment on nobody can start it as a primary, not even by hand. With `candidate`, the role that the standby which
   * takes over comes as, connections of other receivers of WAL that have fallen silent are ended before, because the stop
   * would wait for them; where the candidate is silent nothing is stopped (`demote.candidate_silent`). Since contract 1.11.
   */
  'demote-instance': task(
    () => ({
      instanceId: InstanceId,
      upstream: Upstream,
      candidate: MemberLogin.optional(),
    }),
    /** Position of the shutdown checkpoint: a member that replayed past it has everything. */
    () => z.object({ shutdownLsn: Lsn, stoppedMs: z.number() }),
  ),
  /** Takes a demotion back and starts it as the primary it was. Only while no other was promoted. */
  'restore-primary': task(
    () => ({ instanceId: InstanceId, primary: AsPrimary }),
    () => z.object({ postmasterPid: z.number().int() }),
  ),
  /** The agent keeps who is the primary of a member's cluster, and whether the member is held back. Since contract 1.12. */
  'keep-primary': task(
    () => ({ instanceId: InstanceId, primary: PrimaryTold }),
    () => z.object({}),
  ),
  /**
   * Writes polar_commit_floor and wal_receiver_timeout as the cluster wants them, and sees them in force; null takes them
   * away. An engine that does not run takes them when it starts. Since contract 1.12.
   */
  'set-commit-floor': task(
    () => ({
      instanceId: InstanceId,
      commitFloor: CommitMode.nullable(),
      receiverTimeoutMs: z.number().int().positive().max(600_000).nullable(),
    }),
    /** False where it did not run and takes it when it starts. */
    () => z.object({ inForce: z.boolean() }),
  ),
  /**
   * Ends every process of an instance and keeps it from running as a primary until it is rejoined; has succeeded only once
   * a look finds none. An instance on a newer timeline than `timeline` is left alone and refused (`fence.newer_timeline`):
   * it was promoted after what the order is about. Null or left out: whichever it is on. Since contract 1.9.
   */
  'fence-instance': task(
    () => ({
      instanceId: InstanceId,
      reason: z.string().max(200),
      timeline: z.number().int().positive().nullable().optional(),
    }),
    /** End of its WAL on disk, where that could be read. */
    () =>
      z.object({
        endLsn: Lsn.nullable(),
        wasRunning: z.boolean(),
        /** The timeline of that, and where those before it ended; null where they could not be read. Since contract 1.10. */
        timeline: z.number().int().nullish(),
        ancestors: z.array(TimelineEnd).nullish(),
      }),
  ),
  /** Starts a stopped member as a standby of the upstream and waits until it streams. A fence ends with it. */
  'follow-upstream': task(
    () => ({
      instanceId: InstanceId,
      upstream: Upstream,
      /** The primary of its cluster, for the agent to keep where it is the newest it was informed of. Since contract 1.11. */
      primary: PrimaryTold.optional(),
    }),
    () => z.object({ postmasterPid: z.number().int(), streamingMs: z.number() }),
  ),
  /** A standby stops receiving WAL; what it had received is on its disk when this has succeeded. */
  'isolate-standby': task(
    () => ({ instanceId: InstanceId }),
    () =>
      z.object({
        /** End of its WAL on disk, whether it has received any since its start or not. */
        endLsn: Lsn.nullable(),
        replayedLsn: Lsn.nullable(),
        timeline: z.number().int().nullable(),
        /** Where the timelines before that one ended; null where that is unknown. Since contract 1.10. */
        ancestors: z.array(TimelineEnd).nullish(),
        /** False of one that was promoted: it accepts writes. Since contract 1.10. */
        inRecovery: z.boolean().optional(),
      }),
  ),
  /** A running standby gets its WAL from another member from now on. */
  'repoint-standby': task(
    () => ({
      instanceId: InstanceId,
      upstream: Upstream,
      /** Wait until it streams. */
      wait: z.boolean(),
      /** As in follow-upstream. Since contract 1.11. */
      primary: PrimaryTold.optional(),
    }),
    () => z.object({ streaming: z.boolean() }),
  ),
  /**
   * A standby becomes a primary. Refused when it has not replayed past `beyondLsn`, or has less than `atLeastLsn`.
   * `standbyNames` is its synchronous_standby_names from its first commit on. A failure with `promote.not_begun` (since
   * contract 1.11) says that this task has not ordered the engine to promote itself, and will not.
   */
  'promote-instance': task(
    () => ({
      instanceId: InstanceId,
      beyondLsn: Lsn.nullable(),
      atLeastLsn: Lsn.nullable(),
      standbyNames: z.string().max(1_000),
      /** It becomes the primary of its cluster, and not of one of its own: the agent keeps that. Since contract 1.11. */
      ofCluster: z.boolean().optional(),
    }),
    () =>
      z.object({
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
  ),
  /** Writes synchronous_standby_names and sees it in force. */
  'set-synchronous': task(
    () => ({
      instanceId: InstanceId,
      standbyNames: z.string().max(1_000),
    }),
    () => z.object({ standbyNames: z.string() }),
  ),
  /** What changes would do, by the instance's own binary; fails with the first refusal. Changes nothing. */
  'check-settings': task(
    () => ({
      instanceId: InstanceId,
      changes: z.array(SettingChange).min(1),
    }),
    () =>
      z.object({
        checked: z.array(CheckedSetting.omit({ newValue: true, fault: true, warning: true })),
        managed: ManagedSettings,
        /** Waiting for a restart already; the next one brings them too. */
        pendingRestart: z.array(z.string()),
      }),
  ),
  /**
   * What changes would do, one by one, by the instance's own binary, which is started on a throw-away directory. Changes
   * nothing, and runs beside other tasks of the instance. Since contract 1.8.
   */
  'try-settings': task(
    () => ({
      instanceId: InstanceId,
      changes: z.array(SettingChange).min(1).max(100),
      /** The primary takes them first: what its WAL asks of a standby now is not held against them. */
      acrossCluster: z.boolean(),
    }),
    () => TriedSettings,
    { besideOthers: true },
  ),
  /** The same for an instance that is not there yet; its id is of nobody. */
  'try-new-settings': task(
    () => ({
      instanceId: InstanceId,
      changes: z.array(SettingChange).min(1).max(100),
    }),
    () => TriedSettings,
    { besideOthers: true },
  ),
  /**
   * Checks the machine: kernel, limits, and the disks that the agent and its instances use. Changes nothing; it is about no
   * instance, and its id is of nobody. Since contract 1.19.
   */
  'check-host': task(
    () => ({ instanceId: InstanceId }),
    () => HostCheck,
    { besideOthers: true },
  ),
  /**
   * A piece of a package of Floe's, which the agent keeps where only root can write. One that does not follow on what is there
   * changes nothing, so that an empty one asks how far it is. It is about no instance, and its id is the upgrade's. Since
   * contract 1.26.
   */
  'receive-package': task(
    () => ({
      instanceId: InstanceId,
      digest: HostPackage.shape.digest,
      sizeBytes: HostPackage.shape.sizeBytes,
      offset: z.number().int().min(0).max(PACKAGE_BYTES_MAX),
      /** In base64. */
      data: z.string().max(Math.ceil(PACKAGE_PIECE_BYTES / 3) * 4),
    }),
    () => z.object({ receivedBytes: z.number().int().min(0) }),
    { inMemory: true },
  ),
  /**
   * Has dpkg install packages that were received, once they are verified to be these; refused where the host is not from
   * packages, or has no systemd. The agent is stopped by it, and the task ended by the one that is installed then. Since
   * contract 1.26.
   */
  'install-packages': task(
    () => ({
      instanceId: InstanceId,
      packages: HostPackageList,
      /** Whether an earlier version than the installed one may be among them. */
      downgrade: z.boolean().default(false),
    }),
    () => z.object({ installed: HostPackages.shape.installed }),
  ),
  /**
   * On a standby: waits until its primary's WAL, as far as it has replayed it, asks for no more than these values (by
   * setting), and makes a restartpoint, so that it never again begins before that. At most 10 minutes.
   */
  'await-settings': task(
    () => ({
      instanceId: InstanceId,
      atMost: z.record(z.string(), z.number()),
    }),
    () => z.object({ asked: z.record(z.string(), z.number()) }),
  ),
  /** Reads back, over a new connection, that changes are in force; fails where one is not. */
  'confirm-settings': task(
    () => ({
      instanceId: InstanceId,
      changes: z.array(SettingChange).min(1),
      /** A value that waits for a restart is as good as one in force. */
      pendingAllowed: z.boolean(),
    }),
    () =>
      z.object({
        confirmed: z.array(ConfirmedSetting.omit({ oldValue: true })),
        managed: ManagedSettings,
      }),
  ),
  /** Sees to a password that the member asks for pages with; it stays on its host. */
  'prepare-page-repair': task(
    () => ({ instanceId: InstanceId }),
    () =>
      z.object({
        repairVerifier: ScramVerifier,
        /** The role that it asks as. Left out by older agents: the one computed from its name. */
        repairRole: MemberLogin.optional(),
      }),
  ),
  /**
   * On a primary: the extension page_repair in database postgres, and for each member a role that may read pages and do
   * nothing else. A role whose verifier is null stays as it is; roles of others are dropped.
   */
  'admit-page-repair': task(
    () => ({
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
    () => z.object({ dropped: z.number().int() }),
  ),
  /**
   * Whom this member takes pages from, and who may ask it (lines of pg_hba.conf). A member that is stopped takes both when
   * it starts.
   */
  'set-page-repair-sources': task(
    () => ({
      instanceId: InstanceId,
      sources: z.array(z.object({ name: z.string(), host: z.string(), port: z.number().int() })).max(8),
      members: z.array(InstanceName).max(100),
      roles: MemberRoles,
    }),
    () =>
      z.object({
        /** False where it did not run and takes them when it starts. */
        inForce: z.boolean(),
      }),
  ),
  /**
   * Of an instance that is stopped after a crash: has its engine list the pages that are torn, which starts and changes nothing.
   * Since contract 1.18, as the next two.
   */
  'list-torn': task(
    () => ({ instanceId: InstanceId }),
    () =>
      z.object({
        /** Null where the engine has nothing to list; `why` has its words. */
        list: TornList.nullable(),
        why: z.string().nullable(),
      }),
  ),
  /**
   * A piece of what an instance that is stopped has on its disk: blocks, or WAL. By numbers, never by a path. Refused once it
   * was started since `control` was read.
   */
  'read-copies': task(
    () => ({
      instanceId: InstanceId,
      /** Checksum of its control file, as its list has it. */
      control: TornList.shape.control,
      piece: z.discriminatedUnion('kind', [
        z.object({
          kind: z.literal('pages'),
          blocks: z.array(BlockAddress).min(1).max(PIECE_BLOCKS_MAX),
          /**
           * What `restore-pages` kept gives those that are not whole, or all of them: they are its records from number `first`
           * on. Since contract 1.27.
           */
          restored: z
            .object({ first: z.number().int().min(0).max(TORN_BLOCKS_MAX), all: z.boolean() })
            .optional(),
        }),
        z.object({
          kind: z.literal('wal'),
          ...WalStretch,
          segmentBytes: TornList.shape.segmentBytes,
          length: z.number().int().min(1).max(PIECE_WAL_BYTES),
        }),
      ]),
    }),
    () =>
      z.object({
        ...Piece,
        /** Blocks that are not whole there either; they are not in the piece. */
        damaged: z.array(BlockAddress).max(PIECE_BLOCKS_MAX),
      }),
    { inMemory: true },
  ),
  /**
   * Of a primary that is stopped and listed: restores a base backup beside it, by an engine of its own, to the last record of
   * the primary's WAL, and keeps these blocks of it beside the data directory, in that order. All that it reads of the host it
   * reads as the instance's user, and nothing of the primary is changed. Since contract 1.27, as the next one.
   */
  'restore-pages': task(
    () => ({
      instanceId: InstanceId,
      /** Checksum of its control file, as its list has it. */
      control: TornList.shape.control,
      backupDirectory: HostDirectory,
      /** Null: all WAL since the backup lies in the backup itself, or in the primary's own directory pg_wal. */
      walDirectory: HostDirectory.nullable(),
      /** From where the standby recovers that takes these blocks: the backup has to have all changes before it. */
      redo: Lsn,
      blocks: TornList.shape.blocks,
      relations: TornList.shape.relations,
    }),
    () => RestoredPages,
  ),
  /** Removes what restore-pages kept; nothing there is fine. */
  'drop-restored-pages': task(
    () => ({ instanceId: InstanceId }),
    () => z.object({}),
  ),
  /**
   * Writes a piece into the directory of copies of a standby that is stopped, and nowhere else. Blocks have to be those of its
   * own list, in that order, and WAL begins where its own ends. `origin` makes it count; `remove` takes all of it away.
   */
  'write-copies': task(
    () => ({
      instanceId: InstanceId,
      piece: z.discriminatedUnion('kind', [
        /** An empty directory, once there is room for so many bytes. */
        z.object({
          kind: z.literal('begin'),
          bytes: z
            .number()
            .int()
            .min(0)
            .max(TORN_BLOCKS_MAX * COPY_RECORD_BYTES + COPIED_SEGMENTS_MAX * 2 ** 30),
        }),
        z.object({ kind: z.literal('pages'), first: z.number().int().min(0).max(TORN_BLOCKS_MAX), ...Piece }),
        z.object({ kind: z.literal('wal'), ...WalStretch, ...Piece }),
        z.object({ kind: z.literal('origin'), header: TornList.shape.header }),
        z.object({ kind: z.literal('remove') }),
      ]),
    }),
    () => z.object({ bytes: z.number().int() }),
    { inMemory: true },
  ),
  /**
   * The lines of pg_hba.conf that Floe wrote require TLS from clients on other hosts from now on. Refused where a person
   * changed them, or where another line lets such clients in without TLS.
   */
  'require-tls': task(
    () => ({ instanceId: InstanceId }),
    /** Sessions that were open without TLS stay; `changed` is false where the lines were so already. */
    () => z.object({ changed: z.boolean(), sessionsWithoutTls: z.number().int() }),
  ),
  /** Rebuilds the indexes of a database one after the other, beside readers and writers. Since contract 1.14. */
  'reindex-database': task(
    () => ({ instanceId: InstanceId, database: DatabaseName }),
    () => Reindexed,
  ),
  /**
   * Roles of the instance, on a primary: created with CREATE ROLE, changed with ALTER ROLE, GRANT and REVOKE, dropped with DROP
   * ROLE, each in one transaction. Floe's own, predefined ones, and those that are superusers or could become one are refused
   * (`role.of_floe`, `role.reserved`, `role.superuser`). Since contract 1.24.
   */
  'create-database-role': task(
    () => ({
      instanceId: InstanceId,
      ...roleToCreate,
      passwordVerifier: ScramVerifier.nullable().default(null),
    }),
    () => z.object({}),
  ),
  'change-database-role': task(
    () => ({
      instanceId: InstanceId,
      ...roleToChange,
      passwordVerifier: ScramVerifier.nullable().optional(),
    }),
    () => z.object({}),
  ),
  'drop-database-role': task(
    () => ({ instanceId: InstanceId, role: RoleName }),
    () => z.object({}),
  ),
  /**
   * Installs or updates the extension flashback_table in a database of the primary, as do the other tasks of flashbacks where it
   * is needed. Since contract 1.16, as are all of flashbacks.
   */
  'prepare-flashback': task(
    () => ({ instanceId: InstanceId, database: DatabaseName }),
    () => z.object({ version: z.string(), schema: z.string() }),
  ),
  /**
   * Compares the rows that a table had at a moment with those of now. Reads only, beside other tasks of the instance. Its
   * sample rows stay in the agent's memory under the operation's id (`flashback.rows`).
   */
  'preview-flashback': task(
    () => ({ ...ofTable, at: FlashbackTime }),
    () => FlashbackCounts,
    { besideOthers: true, readsTables: true },
  ),
  /** The same of a table that a flashback made and the one whose rows it has. */
  'compare-flashback': task(
    () => ({ ...ofResult, tableName: TableName }),
    () => FlashbackCounts,
    { besideOthers: true, readsTables: true },
  ),
  /** Makes a table with the rows of that moment; a run after a kill finds what was made, and makes no second one. */
  'flashback-table': task(
    () => ({ ...ofTable, at: FlashbackTime, resultName: ResultName.nullable() }),
    () => FlashbackMade,
  ),
  /** Makes a table with the rows that one had just before it was dropped, truncated or rewritten at this position. */
  'flashback-dropped-table': task(
    () => ({
      ...ofTable,
      lsn: Lsn,
      /** Null or left out: its former name where that is free, else `polar_flashback_…`. Since contract 1.22. */
      resultName: ResultName.nullish(),
      /** Null or left out: its schema. Since contract 1.22. */
      resultSchema: CatalogName.nullish(),
    }),
    () => FlashbackMade,
  ),
  /**
   * Puts rows of a result back, in one transaction, and never twice: a run after a kill asks the engine whether the first one
   * committed. Where `expected` is given and the merge would do anything else, nothing is changed.
   */
  'merge-flashback': task(
    () => ({
      ...ofResult,
      tableName: TableName,
      insertMissing: z.boolean(),
      restoreChanged: z.boolean(),
      deleteAdded: z.boolean(),
      /**
       * Only these samples of the comparison or preview of that operation; or only rows that match, since contract 1.22: an agent
       * of before refuses that, where it would pass over a part that it does not know.
       */
      selection: z.union([
        z.object({ comparison: OperationId, selected: z.array(z.number().int().min(0)).min(1).max(1_000) }),
        z.null(),
        z.object({ kind: z.literal('matching'), condition: RowCondition }),
      ]),
      expected: MergeCounts.nullable(),
      dryRun: z.boolean(),
    }),
    () => FlashbackMerged,
  ),
  /** Exchanges the rows of a result and of its table, in one transaction and never twice. */
  'swap-flashback': task(
    () => ({ ...ofResult, tableName: TableName }),
    () => FlashbackSwapped,
  ),
  /** Drops a result; one that is not there is no error. */
  'drop-flashback': task(
    () => ofResult,
    () => z.object({ dropped: z.boolean() }),
  ),
  /** Lets `flashback.readDownload` read a result until then (ms since the epoch). */
  'export-flashback': task(
    () => ofResult,
    () => z.object({ openUntil: z.number() }),
    { besideOthers: true },
  ),
  /**
   * Restores a base backup and a WAL archive to a moment, in an engine of its own beside the instance, and copies one table out
   * into a new one of the instance. Everything it reads of the host it reads as the instance's user. Since contract 1.16.
   */
  'restore-table': task(
    () => ({
      instanceId: InstanceId,
      database: DatabaseName,
      tableName: QualifiedName,
      at: FlashbackTime,
      backupDirectory: HostDirectory,
      walDirectory: HostDirectory,
      resultName: CatalogName.nullable(),
    }),
    () => RestoredTable,
  ),
  /** ALTER DATABASE / ROLE … SET synchronous_commit; null resets it. */
  'set-commit-mode': task(
    () => ({
      instanceId: InstanceId,
      database: z.string().nullable(),
      role: z.string().nullable(),
      commitMode: CommitMode.nullable(),
    }),
    () => z.object({ commitMode: CommitMode.nullable() }),
  ),
  /** How much of the host it may use from now on; kept by the agent for every start. Since contract 1.20. */
  'limit-instance': task(
    () => ({ instanceId: InstanceId, changes: LimitChanges }),
    () => z.object({ limits: InstanceLimits, observed: LimitsObserved }),
  ),
  /** From when on work without a commit is a stall; null: what the host says. Kept by the agent. Since contract 1.24. */
  'set-stall-length': task(
    () => ({ instanceId: InstanceId, afterMs: z.number().int().min(STALL_AFTER_LEAST_MS).nullable() }),
    () => StallLengthSet,
  ),
}

type Tasks = typeof tasks
export type TaskKind = keyof Tasks
export const taskKinds = Object.keys(tasks) as TaskKind[]

type ObjectOf<Shape> = Shape extends z.core.$ZodShape ? z.ZodObject<Shape> : never
type InputSchemas = {
  [K in TaskKind]: ObjectOf<{ kind: z.ZodLiteral<K> } & Tasks[K]['input']>
}
type InputSchema = InputSchemas[TaskKind]

/** What a task is asked with, its kind among it. */
export const TaskInput = z.lazy(() =>
  z.discriminatedUnion(
    'kind',
    taskKinds.map((kind) => z.object({ kind: z.literal(kind), ...tasks[kind].input })) as unknown as [
      InputSchema,
      ...InputSchema[],
    ],
  ),
)
export type TaskInput = z.infer<typeof TaskInput>
/** How the agent runs tasks of a kind. */
export const taskManner = (kind: TaskKind): TaskManner => tasks[kind]
export type TaskResult<K extends TaskKind> = z.infer<Tasks[K]['result']>
