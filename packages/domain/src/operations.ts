import { z } from 'zod'
import { AutomaticFailover } from './automatic-failover'
import { ClusterId } from './cluster'
import { MemberSettings } from './cluster-settings'
import { DatabaseName, Reindexed } from './database'
import { RoleName, roleToChange, roleToCreate } from './database-role'
import { EngineBuild } from './engine-build'
import { FlashbackTime } from './flashback'
import { LossKind, MergeCounts, ResultName, RowCondition, TableName, TableOid } from './flashback-table'
import { formatBytes, formatDuration } from './format'
import { InstanceId, InstanceName, OperationId, ScramVerifier } from './ids'
import { InstanceIntent, StopMode } from './instance'
import { LimitChanges } from './instance-limits'
import { KeptAsideName } from './kept-aside'
import { Lsn } from './lsn'
import type { OperationOrder, OperationRecord, OrderCommand } from './operation'
import { PageRepair } from './page-repair'
import { CommitMode, SynchronousStandbys } from './replication'
import { ChangeReason, SettingChange } from './setting'
import { StallLength, StallLengthSet } from './stall-length'
import { CatalogName, HostDirectory, QualifiedName } from './table-restore'

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

/** What the inputs of several kinds have in common, with the words that a person reads of it. */
const instanceId = InstanceId
/** The primary at the moment of asking. */
const primaryId = InstanceId
const name = InstanceName.meta({ title: 'Name' })
/** Typed by the person; must equal the instance's name. */
const confirmName = z.string().meta({ description: 'the name of the instance, once more' })
/** Keep the data directory on the host (renamed, never started again by Floe). */
const keepFiles = z
  .boolean()
  .default(false)
  .meta({ title: 'Keep the files', description: 'keep its directory on the host, under another name' })
const mode = StopMode.default('fast').meta({
  title: 'Mode',
  description: 'fast ends sessions and writes a checkpoint; immediate does neither',
})
/** A fast stop that was escalated to an immediate one. Stored rows have this name, as has the function of the database. */
const hastened = z.boolean().optional().meta({ title: 'Escalated to immediate' })
/** Why, in the words of who asked; kept in the history. */
const reason = ChangeReason.optional().meta({ title: 'Why' })
/** The revision that changes of settings roll back to. */
const revisionId = z
  .string()
  .regex(/^\d{1,19}$/)
  .optional()
/** Name of a host, typed by the person, where it cannot be reached. */
const unreachableHost = z.string().nullable().default(null).meta({ title: 'Unreachable host' })

/** The table that is flashed back, by the number that stays when it is renamed. */
const ofTable = {
  instanceId,
  database: DatabaseName.meta({ title: 'Database' }),
  table: TableOid.meta({ title: 'Table number' }),
  tableName: TableName.meta({ title: 'Table' }),
}
/** A table that a flashback made. */
const ofResult = {
  instanceId,
  database: DatabaseName.meta({ title: 'Database' }),
  result: TableOid.meta({ title: 'Result number' }),
  resultName: TableName.meta({ title: 'Result' }),
}
/** The table whose rows it has. */
const tableOfResult = TableName.meta({ title: 'Table' })
const at = FlashbackTime.meta({ title: 'Moment' })

const define = <const R extends OperationRecord>(record: R): R & Omit<OperationRecord, keyof R> => record

/**
 * Every kind of operation, one record each. The kind is the same word in the control database, on the wire and in logs. A
 * new one begins here: docs/checklists/add-operation.md.
 */
export const operationRecords = {
  'create-instance': define({
    title: 'Create instance',
    action: 'instance.create',
    input: z.object({
      instanceId,
      name,
      /** Settings written before the first start; names and values as in postgresql.conf. */
      settings: z.record(z.string(), z.string()).default({}).meta({ title: 'Settings' }),
      /** In force before its first start. */
      limits: LimitChanges.optional().meta({ title: 'Limits' }),
      /** Verifier of the password that role `postgres` gets; the password itself is stored nowhere. */
      ownerPasswordVerifier: ScramVerifier.nullable().default(null),
    }),
    madeAnew: ['instanceId', 'ownerPasswordVerifier'],
    makes: 'new',
    settings: (input: { settings?: Record<string, string> }) => Object.keys(input.settings ?? {}),
  }),
  'start-instance': define({
    title: 'Start instance',
    action: 'instance.start',
    input: z.object({ instanceId }),
    intent: 'running',
    order: {
      noun: 'instance',
      verb: 'start',
      command: {
        summary: 'start an instance',
        about: 'Starts an instance and waits until it answers SQL.',
        done: 'runs',
      },
    },
  }),
  'stop-instance': define({
    title: 'Stop instance',
    action: 'instance.stop',
    input: z.object({ instanceId, mode, hastened }),
    intent: 'stopped',
    order: {
      noun: 'instance',
      verb: 'stop',
      notAsked: ['hastened'],
      command: {
        summary: 'stop an instance',
        about: 'Stops an instance.',
        done: 'is stopped',
      },
    },
  }),
  'restart-instance': define({
    title: 'Restart instance',
    action: 'instance.restart',
    input: z.object({ instanceId, mode, hastened }),
    intent: 'running',
    order: {
      noun: 'instance',
      verb: 'restart',
      notAsked: ['hastened'],
      command: {
        summary: 'restart an instance',
        about: 'Stops an instance, starts it, and waits until it answers SQL.',
        done: 'runs again',
      },
    },
  }),
  'reload-instance': define({
    title: 'Reload settings',
    action: 'instance.reload',
    input: z.object({ instanceId }),
    order: {
      noun: 'instance',
      verb: 'reload',
      command: {
        summary: 'reload an instance’s settings',
        about: 'Makes an instance read its configuration files again.',
        done: 'has read its settings again',
      },
    },
  }),
  /** Gives an instance that shares a user of the operating system with others one of its own; one that runs is restarted. */
  'separate-instance': define({
    title: 'Separate instance',
    action: 'instance.separate',
    input: z.object({ instanceId }),
    order: {
      noun: 'instance',
      verb: 'separate',
      command: {
        summary: 'give an instance a user of its own',
        about:
          'Gives an instance that an earlier version created its own user of the operating system. The instance restarts.',
        done: 'runs as a user of its own',
      },
    },
  }),
  /**
   * Has the agent know an instance again whose files and engine are on its host, and which it has lost; or, with `reported`,
   * the console one that the agent reports and of which there is no row.
   */
  'adopt-instance': define({
    title: 'Adopt instance',
    action: 'instance.adopt',
    input: z.object({ instanceId, reported: ReportedInstance.optional() }),
    makes: 'adopted',
    order: { noun: 'instance', verb: 'adopt', notAsked: ['reported'] },
  }),
  'delete-instance': define({
    title: 'Delete instance',
    action: 'instance.delete',
    input: z.object({ instanceId, confirmName, keepFiles }),
    intent: 'deleted',
    order: {
      noun: 'instance',
      verb: 'delete',
      command: {
        summary: 'delete an instance',
        about: 'Stops an instance and deletes its files. Nothing is kept unless --keep-files is given.',
        done: 'is deleted',
      },
    },
  }),
  'change-settings': define({
    title: 'Change settings',
    action: 'setting.set',
    input: z.object({
      instanceId,
      changes: z.array(SettingChange).min(1).meta({ title: 'Changes' }),
      reason,
      revisionId,
    }),
    settings: (input: { changes: { name: string }[] }) => input.changes.map((c) => c.name),
  }),
  /** How much of its host's processors, memory and disks an instance may use; holds at once, without a restart. */
  'limit-instance': define({
    title: 'Change limits',
    action: 'limit.set',
    input: z.object({ instanceId, changes: LimitChanges.meta({ title: 'Limits' }), reason }),
    leavesPrimaryAlone: true,
  }),
  /** From when on work without a commit is reported as a stall; at once, and kept by the agent. */
  'set-stall-length': define({
    title: 'Set stall length',
    action: 'stall.set_length',
    input: z.object({
      instanceId,
      after: StallLength.meta({
        title: 'Work without a commit for',
        description: 'from when on it is a stall, e.g. 3s or 500ms; "default" for what the host says',
      }),
      reason,
    }),
    leavesPrimaryAlone: true,
    order: {
      noun: 'instance',
      verb: 'stallLength',
      command: {
        summary: 'set from when on work without a commit is a stall',
        about:
          'Sets how long an instance has work and commits none of it before that is marked and listed as a stall: a time such as 3s, 500ms or 2min, or "default" for what the host says. The next sample goes by it; nothing restarts. Stalls that are listed already stay.',
        done: (result) => {
          const { stallAfterMs } = StallLengthSet.parse(result)
          return `counts work without a commit as a stall from ${formatDuration(stallAfterMs)} on`
        },
      },
    },
  }),
  /** Configuration drift (an edited file, ALTER SYSTEM) is adopted or reverted. */
  'resolve-drift': define({
    title: 'Resolve configuration drift',
    action: 'setting.resolve',
    input: z.object({ instanceId, how: z.enum(['adopt', 'revert']).meta({ title: 'How' }), reason }),
  }),
  /** A further member: a copy of the cluster's primary that follows it. */
  'create-standby': define({
    title: 'Create standby',
    action: 'standby.create',
    input: z.object({ instanceId, name, clusterId: ClusterId }),
    madeAnew: ['instanceId'],
    makes: 'new',
    leavesPrimaryAlone: true,
  }),
  /** Takes a standby out of its cluster, with its slot, its role and its files. */
  'remove-standby': define({
    title: 'Remove standby',
    action: 'standby.remove',
    input: z.object({
      instanceId,
      confirmName,
      keepFiles,
      /**
       * Where the standby's host cannot be reached: the standby leaves the cluster and what lies on the host stays there,
       * to be fenced should it come back.
       */
      unreachableHost,
    }),
    leavesPrimaryAlone: true,
  }),
  /** Makes a fenced or broken member a standby again. `rewind` falls back to `clone` where pg_rewind is not allowed. */
  'rejoin-standby': define({
    title: 'Rejoin standby',
    action: 'standby.rejoin',
    input: z.object({
      instanceId,
      method: z.enum(['rewind', 'clone']).default('rewind').meta({ title: 'Method' }),
      /** What only it had acknowledged is not kept aside: a person said that it may be lost. */
      discardOwn: z.boolean().optional().meta({ title: 'Discard WAL that only it has' }),
    }),
    // even if it was stopped before, it is wanted to run from now on
    intent: 'running',
    leavesPrimaryAlone: true,
  }),
  /** Removes what was kept aside at a rejoin. */
  'drop-kept-aside': define({
    title: 'Drop WAL kept aside',
    action: 'instance.drop_kept_aside',
    input: z.object({ instanceId, keptAside: KeptAsideName.meta({ title: 'Kept aside' }), confirmName }),
    leavesPrimaryAlone: true,
  }),
  /** Makes a standby the primary of a cluster of its own; the cluster it leaves goes on. */
  'promote-standby': define({
    title: 'Promote standby',
    action: 'standby.promote',
    input: z.object({ instanceId, confirmName }),
    pointOfNoReturn: 'promote',
    order: {
      noun: 'standby',
      verb: 'promote',
      command: {
        summary: 'make a standby a cluster of its own',
        about:
          'Promotes a standby, which leaves its cluster and becomes the primary of a new one. To make it the primary of its cluster, use "cluster switchover" or "cluster failover".',
        done: 'is the primary of a cluster of its own',
      },
    },
  }),
  /** Lets a standby take over from a running primary, which becomes its standby. Loses nothing. */
  'switchover-cluster': define({
    title: 'Switchover',
    action: 'cluster.switchover',
    input: z.object({ clusterId: ClusterId, instanceId }),
    intent: 'running',
    pointOfNoReturn: 'promote',
    stages: [
      { name: 'check', title: 'Check the standby that takes over', clientsCanWrite: true },
      {
        name: 'prepare',
        title: 'Create a role for the primary’s return as a standby',
        clientsCanWrite: true,
      },
      { name: 'admit', title: 'Admit that role', clientsCanWrite: true },
      { name: 'slots', title: 'Keep WAL for the other members on the new primary', clientsCanWrite: true },
      { name: 'checkpoint', title: 'Write a checkpoint on the primary', clientsCanWrite: true },
      {
        name: 'demote',
        title: 'Stop the primary; its last WAL reaches the standbys',
        clientsCanWrite: false,
      },
      { name: 'promote', title: 'Promote the standby', clientsCanWrite: false },
      { name: 'rejoin', title: 'Let the other members follow the new primary', clientsCanWrite: true },
      { name: 'synchronous', title: 'Set the synchronous standbys', clientsCanWrite: true },
      { name: 'tidy', title: 'Drop the slots of the former primary', clientsCanWrite: true },
      { name: 'observe', title: 'Wait until all members follow', clientsCanWrite: true },
      { name: 'repair', title: 'Let members fetch torn pages from each other', clientsCanWrite: true },
    ],
  }),
  /** Lets a standby take over from a primary that is gone, or has to go. The former one is fenced. */
  'failover-cluster': define({
    title: 'Failover',
    action: 'cluster.failover',
    input: z.object({
      clusterId: ClusterId,
      instanceId,
      /** Nobody was named: another standby is taken where it turns out to hold more, once positions are final. */
      choose: z.boolean().default(false).meta({ title: 'Candidate chosen by position' }),
      /**
       * At most this many bytes of WAL may be lost, typed by the person; `unknown` accepts a loss that cannot be known.
       * Null: nothing that was acknowledged may be lost.
       */
      acceptLoss: z
        .union([z.number().int().min(0), z.literal('unknown')])
        .nullable()
        .default(null)
        .meta({ title: 'Accepted loss, bytes of WAL' }),
      /** The primary's host, which so cannot be fenced now. */
      unreachableHost,
      /** The same of hosts whose instances may have been promoted without the console having heard of it. */
      alsoUnreachable: z.array(z.string()).max(20).default([]).meta({ title: 'More unreachable hosts' }),
      /** What the controller saw, where it decided this automatically. */
      because: z.array(z.string().max(1_000)).max(20).optional(),
    }),
    intent: 'running',
    pointOfNoReturn: 'promote',
    stages: [
      { name: 'check', title: 'Check the standby that takes over', clientsCanWrite: false },
      { name: 'fence', title: 'Fence the former primary', clientsCanWrite: false },
      { name: 'isolate', title: 'Stop WAL streaming to every standby', clientsCanWrite: false },
      { name: 'verify', title: 'Compare what the standbys hold', clientsCanWrite: false },
      { name: 'slots', title: 'Keep WAL for the other members on the new primary', clientsCanWrite: false },
      { name: 'promote', title: 'Promote the standby', clientsCanWrite: false },
      { name: 'repoint', title: 'Let the other standbys follow the new primary', clientsCanWrite: true },
      { name: 'synchronous', title: 'Set the synchronous standbys', clientsCanWrite: true },
      { name: 'observe', title: 'Wait until all standbys follow', clientsCanWrite: true },
      { name: 'repair', title: 'Let members fetch torn pages from each other', clientsCanWrite: true },
    ],
  }),
  /**
   * Primary and standby crashed at once, each needs pages or WAL that only the other has: a standby gets those of the primary’s
   * disk, and then gives the primary its own.
   */
  'recover-cluster': define({
    title: 'Recover cluster',
    action: 'cluster.recover',
    input: z.object({
      clusterId: ClusterId,
      instanceId: primaryId,
      confirmName: z.string().meta({ description: 'the name of the primary, once more' }),
      /** On the primary's host; it gives what is whole on no member. */
      backupDirectory: HostDirectory.optional().meta({ title: 'Base backup' }),
      walDirectory: HostDirectory.optional().meta({ title: 'WAL archive' }),
    }),
    intent: 'running',
    // it stops every member, names paths of the host, and has files of users' data carried from host to host
    role: 'admin',
  }),
  /** Which standbys a commit waits for, and how long. */
  'change-synchronous': define({
    title: 'Change synchronous replication',
    action: 'synchronous.change',
    input: z.object({
      clusterId: ClusterId,
      instanceId: primaryId,
      synchronous: SynchronousStandbys.nullable(),
      commitMode: CommitMode,
    }),
  }),
  /** Whether and how a cluster fails over automatically; null: it does not. */
  'change-automatic': define({
    title: 'Change automatic failover',
    action: 'automatic.change',
    input: z.object({
      clusterId: ClusterId,
      instanceId: primaryId,
      automatic: AutomaticFailover.nullable(),
    }),
  }),
  /** `synchronous_commit` of a database, a role, or a role in a database; null takes it away. */
  'change-commit-mode': define({
    title: 'Change commit mode',
    action: 'commit.change',
    input: z.object({
      instanceId,
      database: DatabaseName.nullable().meta({ title: 'Database' }),
      role: z.string().min(1).max(63).nullable().meta({ title: 'Role' }),
      commitMode: CommitMode.nullable(),
    }),
  }),
  /**
   * Changes of settings on members of a cluster, in the order that keeps standbys replaying. Every member is named, also
   * one that is to become what it is already.
   */
  'change-cluster-settings': define({
    title: 'Change settings of a cluster',
    action: 'setting.set_on_cluster',
    input: z.object({
      clusterId: ClusterId,
      instanceId: primaryId,
      members: z.array(MemberSettings).min(1).meta({ title: 'Changes' }),
      /** False: what needs a restart is written and waits for the next one. Refused where the order matters. */
      restart: z.boolean().default(true).meta({ title: 'With restarts' }),
      reason,
      revisionId,
    }),
    settings: (input: { members: { changes: { name: string }[] }[] }) =>
      input.members.flatMap((m) => m.changes.map((c) => c.name)),
  }),
  /** Which members are page repair sources; set on every member. */
  'change-page-repair': define({
    title: 'Change page repair',
    action: 'page.change',
    input: z.object({ clusterId: ClusterId, instanceId: primaryId, pageRepair: PageRepair }),
  }),
  /** Gives members of an earlier version roles whose names nobody foresees, while they run. */
  'renew-roles': define({
    title: 'Renew roles of members',
    action: 'cluster.renew_roles',
    input: z.object({ clusterId: ClusterId, instanceId: primaryId }),
    // each later step ends without help, and knows better what is to be rolled back
    pointOfNoReturn: 'admit',
  }),
  /**
   * Moves members of a cluster that are on one host onto the engine that is installed there: standbys first, and a primary as the
   * standby that a switchover makes of it, where one can take over. A cluster of one is restarted.
   */
  'upgrade-members': define({
    title: 'Upgrade engine',
    action: 'engine.upgrade',
    input: z.object({
      clusterId: ClusterId,
      /** The standby that takes over; where there is no switchover the primary. */
      instanceId,
      build: EngineBuild.meta({ title: 'Build' }),
      members: z.array(InstanceName).min(1).max(100).meta({ title: 'Members' }),
      /** By name, at the moment of asking. */
      primary: InstanceName.meta({ title: 'Primary before' }),
      switchover: z.boolean().meta({ title: 'With a switchover' }),
    }),
    pointOfNoReturn: 'promote',
  }),
  /** Lets clients on other hosts in over TLS only. */
  'require-tls': define({
    title: 'Require TLS',
    action: 'instance.require_tls',
    input: z.object({ instanceId }),
    order: {
      noun: 'instance',
      verb: 'requireTls',
      command: {
        summary: 'require TLS from clients on other hosts',
        about:
          'Changes the lines that Floe wrote into pg_hba.conf on every member of the cluster: clients on other hosts have to connect over TLS. Open sessions continue. Refused where lines were changed by hand.',
        done: 'requires TLS from clients on other hosts',
      },
    },
  }),
  /** Rebuilds the indexes of a database, one after the other, while clients read and write. */
  'reindex-database': define({
    title: 'Reindex database',
    action: 'instance.reindex',
    input: z.object({
      instanceId,
      database: DatabaseName.meta({
        title: 'Database',
        description: 'the database whose indexes are rebuilt',
      }),
    }),
    leavesPrimaryAlone: true,
    order: {
      noun: 'instance',
      verb: 'reindex',
      command: {
        menu: 'primary',
        summary: 'rebuild the indexes of a database',
        about:
          'Rebuilds the indexes of a database one after the other by REINDEX INDEX CONCURRENTLY, which frees the space that bloat takes and replaces damaged indexes. Reads and writes continue meanwhile; each rebuild waits for older transactions and needs as much disk space as the index. A cancel keeps the indexes rebuilt so far and drops the one being built.',
        done: (result) => {
          const { rebuilt, bytesBefore, bytesAfter } = Reindexed.parse(result)
          if (rebuilt === 0) return 'has no index in this database that can be rebuilt'
          return `has ${rebuilt} rebuilt ${rebuilt === 1 ? 'index' : 'indexes'}: ${formatBytes(bytesBefore)} before, ${formatBytes(bytesAfter)} now`
        },
      },
    },
  }),
  /** A database role of the instance, created on the primary; standbys have it by replication. */
  'create-database-role': define({
    title: 'Create database role',
    action: 'role.create',
    input: z.object({
      instanceId,
      ...roleToCreate,
      /** The password itself is stored nowhere; null: it has none. */
      passwordVerifier: ScramVerifier.nullable().default(null),
    }),
    madeAnew: ['passwordVerifier'],
    leavesPrimaryAlone: true,
    order: { noun: 'role', verb: 'create' },
  }),
  'change-database-role': define({
    title: 'Change database role',
    action: 'role.change',
    input: z.object({
      instanceId,
      ...roleToChange,
      /** null takes the password away; left out, it stays. */
      passwordVerifier: ScramVerifier.nullable().optional(),
    }),
    madeAnew: ['passwordVerifier'],
    leavesPrimaryAlone: true,
    order: { noun: 'role', verb: 'change' },
  }),
  'drop-database-role': define({
    title: 'Drop database role',
    action: 'role.drop',
    input: z.object({ instanceId, role: RoleName.meta({ title: 'Role' }) }),
    leavesPrimaryAlone: true,
  }),
  /** Gives a database what flashbacks in it need: the extension flashback_table, as the engine brings it. */
  'prepare-flashback': define({
    title: 'Prepare database for flashback',
    action: 'flashback.prepare',
    input: z.object({ instanceId, database: DatabaseName.meta({ title: 'Database' }) }),
    leavesPrimaryAlone: true,
    order: { noun: 'flashback', verb: 'prepare' },
  }),
  /** Counts what a flashback to a moment would bring back: rows of then compared with those of now. On any member. */
  'preview-flashback': define({
    title: 'Preview flashback',
    action: 'flashback.preview',
    input: z.object({ ...ofTable, at }),
    readsOnly: true,
    keepsRows: true,
    order: { noun: 'flashback', verb: 'preview' },
  }),
  /** Makes a table with the rows that another one had at a moment. */
  'flashback-table': define({
    title: 'Flash back table',
    action: 'flashback.table',
    input: z.object({
      ...ofTable,
      at,
      resultName: ResultName.optional().meta({ title: 'Name of the result' }),
    }),
    leavesPrimaryAlone: true,
    keepsRows: true,
    order: { noun: 'flashback', verb: 'to' },
  }),
  /** Makes a table with the rows that one had just before it was dropped, truncated or rewritten: exact, whatever the clock says. */
  'flashback-dropped-table': define({
    title: 'Flash back lost table',
    action: 'flashback.dropped_table',
    input: z.object({
      ...ofTable,
      lsn: Lsn.meta({ title: 'Position of the loss' }),
      /** For the words of the operation alone. */
      lost: LossKind.optional().meta({ title: 'What happened to it' }),
      /** Left out: its former name where it was dropped and that is free, else `polar_flashback_…`. */
      resultName: ResultName.optional().meta({ title: 'Name of the result' }),
      /** Left out: its schema. */
      resultSchema: CatalogName.optional().meta({ title: 'Schema of the result' }),
    }),
    leavesPrimaryAlone: true,
    keepsRows: true,
    order: { noun: 'flashback', verb: 'beforeDrop' },
  }),
  /** Compares a result with its table as it is now. On any member. */
  'compare-flashback': define({
    title: 'Compare flashback',
    action: 'flashback.compare',
    input: z.object({ ...ofResult, tableName: tableOfResult }),
    readsOnly: true,
    keepsRows: true,
    order: { noun: 'flashback', verb: 'compare' },
  }),
  /** Puts rows of a result back into its table, in one transaction; a dry run counts them and changes nothing. */
  'merge-flashback': define({
    title: 'Merge flashback',
    action: 'flashback.merge',
    input: z.object({
      ...ofResult,
      tableName: tableOfResult,
      insertMissing: z.boolean().meta({ title: 'Insert missing rows' }),
      restoreChanged: z.boolean().meta({ title: 'Restore changed rows' }),
      deleteAdded: z.boolean().meta({ title: 'Delete added rows' }),
      /** The comparison or preview whose samples `selected` numbers; key values are stored nowhere. */
      comparison: OperationId.optional().meta({ title: 'Selected in' }),
      selected: z
        .array(z.number().int().min(0).max(10_000))
        .min(1)
        .max(1_000)
        .optional()
        .meta({ title: 'Selected rows' }),
      /** Only rows for which it holds; not beside selected ones. Evaluated as the owner of the table. */
      condition: RowCondition.optional().meta({ title: 'Only rows that match' }),
      /** Refused, and nothing changed, where the merge would do anything else. */
      expected: MergeCounts.optional().meta({ title: 'Expected' }),
      dryRun: z.boolean().default(false).meta({ title: 'Dry run' }),
    }),
    // counts of rows that match reveal what is in them, and functions in it run as the owner
    role: ({ condition }: { condition?: string }) => (condition === undefined ? undefined : 'admin'),
    leavesPrimaryAlone: true,
    keepsRows: true,
    order: { noun: 'flashback', verb: 'merge' },
  }),
  /** A table gets exactly the rows of a result, and the result those that the table had. */
  'swap-flashback': define({
    title: 'Swap flashback',
    action: 'flashback.swap',
    input: z.object({ ...ofResult, tableName: tableOfResult, confirmName }),
    leavesPrimaryAlone: true,
    keepsRows: true,
    order: { noun: 'flashback', verb: 'swap' },
  }),
  'drop-flashback': define({
    title: 'Drop flashback',
    action: 'flashback.drop',
    input: z.object(ofResult),
    leavesPrimaryAlone: true,
    order: { noun: 'flashback', verb: 'drop' },
  }),
  /** Opens the download of a result as CSV for 15 minutes. On any member. */
  'export-flashback': define({
    title: 'Export flashback',
    action: 'flashback.export',
    input: z.object(ofResult),
    // its download shows rows
    role: 'admin',
    readsOnly: true,
    order: { noun: 'flashback', verb: 'export' },
  }),
  /**
   * A table as it was at a moment that no flashback window reaches: a base backup and a WAL archive on the instance's host are
   * restored beside it, and the table is copied out into a new one.
   */
  'restore-table': define({
    title: 'Restore table from backup',
    action: 'flashback.restore',
    input: z.object({
      instanceId,
      database: DatabaseName.meta({ title: 'Database' }),
      tableName: QualifiedName.meta({ title: 'Table' }),
      at: FlashbackTime.meta({ title: 'As of' }),
      backupDirectory: HostDirectory.meta({ title: 'Base backup' }),
      walDirectory: HostDirectory.meta({ title: 'WAL archive' }),
      /** In the schema of the table; `polar_restored_…` where it is left out. */
      resultName: CatalogName.optional().meta({ title: 'Name of the result' }),
    }),
    // it names paths of the host
    role: 'admin',
    leavesPrimaryAlone: true,
    order: { noun: 'flashback', verb: 'restore' },
  }),
  /**
   * Stops a former primary that came back and keeps it from accepting writes. Asked for by the controller, for an instance
   * on this timeline or an older one: on a newer one it was promoted since.
   */
  'fence-instance': define({
    title: 'Fence instance',
    action: 'instance.fence',
    input: z.object({ instanceId, timeline: z.number().int().positive().nullable().optional() }),
  }),
} as const satisfies Record<string, OperationRecord>

type Records = typeof operationRecords
export type OperationKind = keyof Records
export const operationKinds = Object.keys(operationRecords) as OperationKind[]
export const OperationKind = z.enum(operationKinds as [OperationKind, ...OperationKind[]])
export type OperationInput<K extends OperationKind> = z.infer<Records[K]['input']>

/** The record of a kind, without what only that kind has in its type. */
export const operationRecord = (kind: OperationKind): OperationRecord => operationRecords[kind]

/** The kinds whose record says so. */
export const operationKindsThat = (says: (record: OperationRecord) => boolean): OperationKind[] =>
  operationKinds.filter((kind) => says(operationRecord(kind)))

/** The kinds whose procedure the API derives (`order`). */
export type OrderedKind = {
  [K in OperationKind]: Records[K] extends { order: { noun: string } } ? K : never
}[OperationKind]
/** Those of them whose command is derived, too. */
export type CommandKind = {
  [K in OrderedKind]: Records[K]['order'] extends { command: { summary: string } } ? K : never
}[OrderedKind]

type ShapeOf<K extends OrderedKind> = Records[K]['input']['shape']
type NotAsked<K extends OrderedKind> = Records[K]['order'] extends { notAsked: readonly (infer F)[] }
  ? F
  : never
type OrderShape<K extends OrderedKind> = {
  [F in Exclude<keyof ShapeOf<K>, NotAsked<K>>]: ShapeOf<K>[F]
}
type ObjectOf<S> = S extends z.core.$ZodShape ? z.ZodObject<S> : never

/** What a kind that is derived is asked with: its input without what only Floe fills in. */
export function orderInput<K extends OrderedKind>(kind: K): ObjectOf<OrderShape<K>> {
  const { input, order } = operationRecord(kind)
  const omitted = Object.fromEntries((order?.notAsked ?? []).map((field) => [field, true as const]))
  return input.omit(omitted as never) as unknown as ObjectOf<OrderShape<K>>
}

/** The kinds of a noun by their verb. */
export type OrdersOf<Noun extends string> = {
  [K in OrderedKind as Records[K]['order'] extends { noun: Noun; verb: infer V extends string }
    ? V
    : never]: K
}

/** A part of an order's input as a person gives it: an option of the command line, a control of a dialog. */
export type OrderField = {
  name: string
  title: string
  description: string
  /** Switched on, one of a few words, or text. */
  form: 'switch' | 'choice' | 'text'
  choices: readonly string[]
  /** It may be left out; then it is this, where there is such a value. */
  optional: boolean
  standard: string | number | boolean | undefined
  /** Holds a value that is given. */
  schema: z.ZodType
}

function orderField(name: string, part: z.ZodType): OrderField {
  let schema: z.ZodType = part
  let optional = false
  let standard: unknown
  while (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable
  ) {
    optional = true
    if (schema instanceof z.ZodDefault) standard = schema.def.defaultValue
    schema = schema.unwrap() as z.ZodType
  }
  const { title = name, description = title } = part.meta() ?? {}
  const choices = schema instanceof z.ZodEnum ? schema.options.map(String) : []
  return {
    name,
    title,
    description,
    form: schema instanceof z.ZodBoolean ? 'switch' : choices.length > 0 ? 'choice' : 'text',
    choices,
    optional,
    standard: standard === null ? undefined : (standard as OrderField['standard']),
    schema,
  }
}

/** What a person gives with an order besides the instance. */
export const orderFields = (kind: CommandKind): OrderField[] =>
  Object.entries(orderInput(kind).shape as Record<string, z.ZodType>)
    .filter(([name]) => name !== 'instanceId')
    .map(([name, part]) => orderField(name, part))

/** The kinds whose procedure is derived, of a noun or of all. */
export const orderedKinds = (noun?: string): OrderedKind[] =>
  operationKindsThat(
    ({ order }) => order !== undefined && (noun === undefined || order.noun === noun),
  ) as OrderedKind[]

/** The kinds whose command is derived and whose order says so. */
export const commandKindsThat = (
  says: (command: OrderCommand, order: OperationOrder) => boolean,
): CommandKind[] =>
  operationKindsThat(
    ({ order }) => order?.command !== undefined && says(order.command, order),
  ) as CommandKind[]
