import {
  CommitModeScope,
  DatabaseName,
  DatabaseRole,
  Fault,
  FlashbackEvent,
  FlashbackLog,
  FlashbackLost,
  FlashbackPoint,
  FlashbackResult,
  FlashbackRows,
  FlashbackSample,
  FlashbackTableInfo,
  HostFacts,
  HostId,
  InstanceEngine,
  InstanceId,
  InstanceRole,
  InstanceState,
  KeptAside,
  KeptAsideName,
  LimitsObserved,
  Lsn,
  MemberLogins,
  OperationId,
  PrimaryKnown,
  Protection,
  RemoteAccess,
  ReplicationObserved,
  RoleName,
  Setting,
  SettingChange,
  SharedServer,
  SharedServerSeen,
  StepWork,
  TableOid,
} from '@floe/domain'
import { CheckpointRecord, RunningCheckpoint, Sample, StallRecord } from '@floe/telemetry'
import { z } from 'zod'
import { TaskInput, TriedSettings } from './tasks'

/** Of an agent's certificate; times in ms since the epoch. */
export const CertificateFacts = z.object({
  /** sha256 in hexadecimal. */
  fingerprint: z.string(),
  notBefore: z.number(),
  notAfter: z.number(),
})
export type CertificateFacts = z.infer<typeof CertificateFacts>

export const CertificateRequest = z.object({
  /** PKCS#10 in PEM. */
  request: z.string().max(4_000),
})
export type CertificateRequest = z.infer<typeof CertificateRequest>
export const CertificateInstallInput = z.object({
  /** PEM, for the newest request. */
  certificate: z.string().max(8_000),
})
export type CertificateInstallInput = z.infer<typeof CertificateInstallInput>

export const Hello = z.object({
  contractVersion: z.string(),
  agentVersion: z.string(),
  hostId: HostId,
  hostName: z.string(),
  /** New with every start of the agent process. */
  bootId: z.string(),
  startedAt: z.number(),
  /** The agent's clock, ms since the epoch, so that a skewed host is noticed. */
  now: z.number(),
  /** Words a console may ask for, e.g. `telemetry.stream`, `engine.bulk_io`. */
  capabilities: z.array(z.string()),
  /** The certificate it answers with. */
  certificate: CertificateFacts.optional(),
})
export type Hello = z.infer<typeof Hello>

/** How to reach an instance, without a password. */
export const ConnectionInfo = z.object({
  host: z.string(),
  port: z.number().int(),
  socketDirectory: z.string(),
  user: z.string(),
  database: z.string(),
})
export type ConnectionInfo = z.infer<typeof ConnectionInfo>

/** A setting that a file says otherwise than Floe left it: somebody edited the file or used ALTER SYSTEM. */
export const SettingDrift = z.object({
  name: z.string(),
  /** Its name in the data directory. */
  file: z.enum(['postgresql.conf', 'floe.conf', 'postgresql.auto.conf']),
  /** Where it stands now; null where the line is gone. */
  line: z.number().int().nullable(),
  /** The values of the file's line before and now; null: there is none. */
  was: z.string().nullable(),
  is: z.string().nullable(),
})
export type SettingDrift = z.infer<typeof SettingDrift>

/** An instance as the agent sees it now. */
export const InstanceObserved = z.object({
  instanceId: InstanceId,
  name: z.string(),
  state: InstanceState,
  /** Why it is in that state: the transition's sentence or the engine's last error. */
  because: z.string().nullable(),
  role: InstanceRole.nullable(),
  engineVersion: z.string().nullable(),
  systemIdentifier: z.string().nullable(),
  port: z.number().int(),
  directory: z.string(),
  connection: ConnectionInfo,
  postmasterPid: z.number().int().nullable(),
  startedAt: z.number().nullable(),
  dataChecksums: z.boolean().nullable(),
  timeline: z.number().int().nullable(),
  pendingRestart: z.array(z.string()),
  /** Newest sample's number, so that a collector knows whether it lags. */
  newestSeq: z.number().int().nullable(),
  observedAt: z.number(),
  /** What it knows of replication; null while it does not answer. Left out by older agents. */
  replication: ReplicationObserved.nullish(),
  /** Set while this agent keeps it from running as a primary, with the reason. */
  fenced: z.object({ at: z.number(), reason: z.string() }).nullish(),
  /** What protects it against torn pages, as of some seconds ago; null for an engine or database without the views. */
  protection: Protection.nullish(),
  /** Its flashback log, as of some seconds ago; null for an engine or database without the views. Since contract 1.15. */
  flashback: FlashbackLog.nullish(),
  /** Configuration drift. */
  settingDrift: z.array(SettingDrift).optional(),
  /** The user of the operating system that it runs as, whether no other instance does, and whether it could have one of its own. */
  user: z.object({ name: z.string(), own: z.boolean(), separable: z.boolean() }).optional(),
  /** The roles that it logs in with at other members. Since contract 1.7. */
  logins: MemberLogins.optional(),
  /** How clients on other hosts come in; null while it does not answer. Since contract 1.7. */
  remoteAccess: RemoteAccess.nullish(),
  /**
   * What is wrong with its processes, in words: they work without its postmaster.pid, in another directory than its own,
   * or without a postmaster. Null as long as all is well. Since contract 1.9.
   */
  processFault: Fault.nullish(),
  /**
   * Of a standby without a WAL receiver: what its engine said last about why, in its own words. Null while it streams, and
   * where it said nothing within the last minute. Since contract 1.11.
   */
  whyNotStreaming: z.string().max(1_000).nullish(),
  /**
   * The primary of its cluster on the newest timeline that an order named. Newer than what the console has recorded, it says
   * that the console's database is older than the cluster. Since contract 1.11.
   */
  primaryKnown: PrimaryKnown.nullish(),
  /** Whether it starts as a standby, or runs as one: its standby.signal is there. Since contract 1.13. */
  standbySignal: z.boolean().optional(),
  /** How much of its host it may use, and what of that is in force. Since contract 1.20. */
  limits: LimitsObserved.optional(),
  /** How long it has work and commits none of it before that is a stall, ms. Since contract 1.24. */
  stallAfterMs: z.number().int().optional(),
  /**
   * Whether its sessions share backends, as of some seconds ago; null for an engine or database without the views, and while it
   * does not answer. Since contract 1.24.
   */
  sharedServer: SharedServerSeen.nullish(),
  /** Of which build its engine is. Since contract 1.25. */
  engine: InstanceEngine.optional(),
})
export type InstanceObserved = z.infer<typeof InstanceObserved>

/** Everything the agent sees of its host, numbered: `report.read` waits until there is something newer than `after` or `waitMs` passed. */
export const ReportInput = z.object({
  after: z.object({ bootId: z.string(), seq: z.number().int() }).nullable(),
  waitMs: z.number().int().min(0).max(10_000).default(0),
})
/** Something that is wrong with the agent itself, e.g. a full disk. The same key as long as it lasts. */
export const AgentProblem = z.object({
  key: z.string(),
  /** The instance it is about, where it is about one. */
  instanceId: InstanceId.nullable(),
  since: z.number(),
  fault: Fault,
})
export type AgentProblem = z.infer<typeof AgentProblem>
export const Report = z.object({
  bootId: z.string(),
  seq: z.number().int(),
  at: z.number(),
  facts: HostFacts,
  instances: z.array(InstanceObserved),
  /** Since contract 1.1. */
  problems: z.array(AgentProblem).optional(),
})
export type Report = z.infer<typeof Report>

/** Identity of a task: starting the same key twice starts nothing. */
export const TaskKey = z.object({
  operationId: z.uuid(),
  step: z.string().min(1).max(63),
  attempt: z.number().int().min(1),
})
export type TaskKey = z.infer<typeof TaskKey>

export const TaskState = z.enum(['not-started', 'running', 'succeeded', 'failed', 'cancelled'])
export type TaskState = z.infer<typeof TaskState>

export const TaskLogLine = z.object({ seq: z.number().int(), at: z.number(), text: z.string() })
export type TaskLogLine = z.infer<typeof TaskLogLine>

export const TaskStartInput = z.object({ key: TaskKey, task: TaskInput })
export const TaskCheckInput = z.object({ key: TaskKey, afterLogSeq: z.number().int().default(0) })
export const TaskStatus = z.object({
  key: TaskKey,
  state: TaskState,
  /** 0 to 1, null where the task cannot know. */
  progress: z.number().min(0).max(1).nullable(),
  message: z.string().nullable(),
  /** Of a task that works through bytes; null or left out of any other. */
  work: StepWork.nullish(),
  log: z.array(TaskLogLine),
  /** Set when succeeded: the result schema of the task's kind. */
  result: z.record(z.string(), z.unknown()).nullable(),
  /** Set when failed. */
  fault: Fault.nullable(),
  startedAt: z.number().nullable(),
  endedAt: z.number().nullable(),
})
export type TaskStatus = z.infer<typeof TaskStatus>

export const SettingListInput = z.object({
  instanceId: InstanceId,
  /** Only these; all when left out. */
  names: z.array(z.string()).optional(),
})
export const SettingList = z.object({ settings: z.array(Setting), observedAt: z.number() })

export const CommitModeListInput = z.object({ instanceId: InstanceId })
/** What synchronous_commit is set to for databases and roles, as the instance's catalog has it. */
export const CommitModeList = z.object({ commitModes: z.array(CommitModeScope), observedAt: z.number() })

/** No instance that is used has more; what is left out is said. */
export const ROLES_LISTED_MAX = 1_000
export const DatabaseRoleListInput = z.object({
  instanceId: InstanceId,
  /** Only the role of this name; all but the predefined ones when left out. */
  name: RoleName.optional(),
})
export const DatabaseRoleList = z.object({
  roles: z.array(DatabaseRole).max(ROLES_LISTED_MAX),
  /** There are more than are listed. */
  more: z.boolean(),
  observedAt: z.number(),
})

export const ProtectionReadInput = z.object({ instanceId: InstanceId })
/** What protects an instance against torn pages; null for an engine, or a database, without the views. */
export const ProtectionRead = z.object({ protection: Protection.nullable(), observedAt: z.number() })

export const FlashbackReadInput = z.object({
  instanceId: InstanceId,
  /** Also samples pages, to foretell what the log would take. Since contract 1.17. */
  sample: z.boolean().default(false),
})
/** The flashback log and its points at this moment; null for an engine, or a database, without the views. */
export const FlashbackRead = z.object({
  log: FlashbackLog.nullable(),
  /** The newest 1000 at most, oldest first. */
  points: z.array(FlashbackPoint).max(1_000),
  /** Null where none was asked for, or none can be had. Since contract 1.17. */
  sample: FlashbackSample.nullable().default(null),
  observedAt: z.number(),
})

export const FlashbackTablesInput = z.object({
  instanceId: InstanceId,
  /** Null: the first by name that is not a template; `postgres` only where there is no other. */
  database: DatabaseName.nullable(),
  /** A part of `schema.name`, a whole name being found first; empty: all. */
  search: z.string().max(200).default(''),
  limit: z.number().int().min(1).max(500).default(100),
})
/** Tables of a database that somebody may want back: those whose name begins as was searched for first, then the largest. */
export const FlashbackTables = z.object({
  databases: z.array(z.string()).max(1_000),
  database: z.string(),
  tables: z.array(FlashbackTableInfo).max(500),
  /** How many there are that match. */
  total: z.number().int(),
})

const ofDatabase = { instanceId: InstanceId, database: DatabaseName }
export const FlashbackActivityInput = z.object({
  ...ofDatabase,
  /** Only of this one; null: of all. */
  table: TableOid.nullable(),
})
/**
 * Large changes, truncations, drops and the like, as the WAL of the window has them. Each call reads on for some seconds from
 * where the last one ended; while it is not `complete` there is more.
 */
export const FlashbackActivity = z.object({
  /** The newest first. */
  events: z.array(FlashbackEvent).max(1_000),
  /** ms since the epoch; null where nothing was read. */
  coveredFrom: z.number().nullable(),
  coveredTo: z.number().nullable(),
  complete: z.boolean(),
  /** A change of a partitioned table may miss partitions in which fewer rows were changed. Since contract 1.22. */
  leastPartitionRows: z.number().int().nullish(),
})

export const FlashbackLostInput = z.object(ofDatabase)
export const FlashbackLostList = z.object({
  /** The newest first. */
  lost: z.array(FlashbackLost).max(500),
})
export const FlashbackResultsInput = z.object(ofDatabase)
export const FlashbackResults = z.object({
  /** The newest first. */
  results: z.array(FlashbackResult).max(500),
})

/** Answered only for a preview, a comparison or a merge that this agent has carried out, for 15 minutes. */
export const FlashbackRowsInput = z.object({ operationId: OperationId })
export const FlashbackRowsRead = FlashbackRows

export const FlashbackDownloadInput = z.object({
  /** The export that opened it. */
  operationId: OperationId,
  /** One pass over the rows; named by the caller. */
  download: z.uuid(),
  /** Counted from 0; the last one may be asked for again. */
  piece: z.number().int().min(0),
  /** Nobody reads on: what is open for it is closed. */
  end: z.boolean().default(false),
})
/**
 * A result as CSV, piece by piece, so that a slow reader lets the engine wait: no more than one piece is held. An
 * answer of no text says that the engine has not come to it yet.
 */
export const FlashbackDownload = z.object({
  text: z.string().max(300_000),
  /** The piece to ask for next; null: this was the last. */
  next: z.number().int().nullable(),
})

export const SharedServerReadInput = z.object({ instanceId: InstanceId })
/** Sessions, workers and pools of Shared Server; null for an engine, or a database, without the views. */
export const SharedServerRead = z.object({ sharedServer: SharedServer.nullable(), observedAt: z.number() })

export const SettingCheckInput = z.object({
  instanceId: InstanceId,
  changes: z.array(SettingChange).min(1),
  /** The primary takes them first: what its WAL asks of a standby now is not held against them. */
  acrossCluster: z.boolean().optional(),
})
/** A dry run by the instance's own binary. */
export const SettingCheck = TriedSettings
export type SettingCheck = z.infer<typeof SettingCheck>

export const TelemetryReadInput = z.object({
  instanceId: InstanceId,
  /** Samples with a greater number; -1 reads from the oldest kept. */
  afterSeq: z.number().int().min(-1),
  limit: z.number().int().min(1).max(3_600).default(600),
})
export const TelemetryRead = z.object({
  samples: z.array(Sample),
  /** Numbers of the oldest and newest sample kept; null when there is none. */
  oldestSeq: z.number().int().nullable(),
  newestSeq: z.number().int().nullable(),
})
export const TelemetryStreamInput = z.object({
  instanceId: InstanceId,
  /** Stream from the sample after this one. tRPC sets it when it reconnects. */
  lastEventId: z.string().nullish(),
})

export const CheckpointReadInput = z.object({
  instanceId: InstanceId,
  /** Records with a greater number; 0 reads from the oldest kept. */
  afterSeq: z.number().int().min(0),
  limit: z.number().int().min(1).max(1_000).default(200),
  /** Also stalls with a greater number; left out: none of them. Since contract 1.20. */
  afterStallSeq: z.number().int().min(0).optional(),
})
export const NumberedCheckpoint = CheckpointRecord.extend({ seq: z.number().int() })
export type NumberedCheckpoint = z.infer<typeof NumberedCheckpoint>
export const NumberedStall = StallRecord.extend({ seq: z.number().int() })
export type NumberedStall = z.infer<typeof NumberedStall>
export const CheckpointRead = z.object({
  checkpoints: z.array(NumberedCheckpoint),
  running: RunningCheckpoint.nullable(),
  stalls: z.array(NumberedStall).default([]),
  /** One that lasts: `endedAt` is the newest sample. */
  runningStall: StallRecord.nullable().default(null),
})

export const KeptAsideListInput = z.object({ instanceId: InstanceId })
export const KeptAsideList = z.object({ keptAside: z.array(KeptAside).max(100) })
export const KeptAsideReadInput = KeptAsideListInput.extend({
  name: KeptAsideName,
  /** As the piece before answered it; null: from the beginning. */
  from: Lsn.nullable(),
  /** Commits and rollbacks only, of more WAL at a time. */
  transactionsOnly: z.boolean(),
})
export const KeptAsideRead = z.object({
  /** As pg_waldump prints them, one line each. */
  records: z.array(z.string().max(2_000)).max(5_000),
  /** Where the next piece begins; null: this was the last. */
  next: Lsn.nullable(),
  /** Why the records end before the end that was seen when they were kept; null where they do not. */
  stopped: z.string().max(2_000).nullable(),
})
