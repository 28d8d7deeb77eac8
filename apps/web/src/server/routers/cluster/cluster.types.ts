import {
  AskedMember,
  AutomaticFailover,
  ClusterConnectionForms,
  ClusterId,
  ClusterObserved,
  CommitMode,
  CommitModeScope,
  Fault,
  HostState,
  InstanceId,
  InstanceState,
  OperationId,
  OperationKind,
  OperationState,
  PageRepair,
  SynchronousStandbys,
} from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

/** Where a cluster is named by a person, its name or that of a member does as well as its id. */
export const ClusterRef = z.union([
  z.object({ clusterId: ClusterId }),
  z.object({ name: z.string().max(63) }),
])

/** A standby as the next primary: why it cannot be, and what would be lost, in bytes that are never rounded. */
export const Candidate = z.object({
  instanceId: InstanceId,
  name: z.string(),
  hostName: z.string(),
  blockers: z.array(Fault),
  notes: z.array(z.string()),
  lagBytes: z.number().nullable(),
  expectedLossBytes: z.number().nullable(),
  lossless: z.boolean(),
  /** What each member holds, as last seen. */
  asked: z.array(AskedMember),
})

export const Waiting = z.object({
  /** Synchronous standbys that are connected, and as many as a commit asks for. */
  connected: z.number().int(),
  asked: z.number().int(),
  /** Sessions whose commit waits at this moment. */
  waiting: z.number().int(),
})

export const ClusterSummary = z.object({
  clusterId: ClusterId,
  name: z.string(),
  primary: z
    .object({ instanceId: InstanceId, name: z.string(), state: InstanceState, hostState: HostState })
    .nullable(),
  members: z.number().int(),
  /** Standbys that stream from the primary, as it sees them. */
  streaming: z.number().int(),
  synchronous: z.string(),
  commitMode: CommitMode,
  /** Set when commits wait because too few synchronous standbys are connected. */
  waiting: Waiting.nullable(),
  /** Members of an earlier version, whose roles have names that anybody could foresee. */
  foreseeableMembers: z.array(z.string()),
})
export type ClusterSummary = z.infer<typeof ClusterSummary>

export const OperationStage = z.object({
  name: z.string(),
  title: z.string(),
  clientsCanWrite: z.boolean(),
})

export const ClusterDetail = z.object({
  cluster: ClusterObserved,
  /** Every standby judged for each way, the best first. */
  candidates: z.object({ switchover: z.array(Candidate), failover: z.array(Candidate) }),
  stages: z.object({ switchover: z.array(OperationStage), failover: z.array(OperationStage) }),
  waiting: Waiting.nullable(),
  /** Why it must not fail over automatically, each a reason; empty where it may. */
  automaticBlockers: z.array(Fault),
  /** Why it would not if its primary were lost now: too few of the standbys that report so are there. */
  automaticShortage: Fault.nullable(),
  /** The last one that the controller decided, while automatic failover is on. */
  lastAutomaticFailover: z
    .object({ operationId: OperationId, state: OperationState, createdAt: z.number(), promoted: z.string() })
    .nullable(),
  /** One connection that always reaches the primary, one for reads; null while no member's address is known. */
  connections: z.object({ primary: ClusterConnectionForms, reads: ClusterConnectionForms }).nullable(),
  openOperation: z.object({ operationId: OperationId, kind: OperationKind }).nullable(),
  now: z.number(),
})
export type ClusterDetail = z.infer<typeof ClusterDetail>

export const ClusterDeletionProtectionInput = z.intersection(ClusterRef, z.object({ on: z.boolean() }))
export const ClusterDeletionProtection = z.object({ clusterId: ClusterId, name: z.string(), on: z.boolean() })

export const ClusterAutomaticInput = z.object({
  clusterId: ClusterId,
  /** Times in ms; null: it does not fail over automatically. */
  automatic: AutomaticFailover.nullable(),
  idempotencyKey: IdempotencyKey.optional(),
})

export const ClusterList = z.object({ clusters: z.array(ClusterSummary), now: z.number() })

export const ClusterPageRepairInput = z.object({
  clusterId: ClusterId,
  pageRepair: PageRepair,
  idempotencyKey: IdempotencyKey.optional(),
})

export const ClusterSwitchoverInput = z.object({
  clusterId: ClusterId,
  /** Who takes over; left out, the best candidate. */
  instanceId: InstanceId.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})

export const ClusterFailoverInput = ClusterSwitchoverInput.extend({
  /** At most so many bytes of WAL may be lost, as typed by a person; `unknown` where it cannot be known. */
  acceptLoss: z
    .union([z.number().int().min(0), z.literal('unknown')])
    .nullable()
    .default(null),
  /** Name of the primary's host, as typed by a person, where it is out of reach and its primary cannot be fenced now. */
  unreachableHost: z.string().max(63).nullable().default(null),
  /** The same of hosts whose instances may have been promoted without the console having heard of it. */
  alsoUnreachable: z.array(z.string().max(63)).max(20).default([]),
})

export const ClusterSynchronousInput = z.object({
  clusterId: ClusterId,
  /** null: asynchronous, a commit waits for no standby. */
  synchronous: SynchronousStandbys.nullable(),
  commitMode: CommitMode,
  idempotencyKey: IdempotencyKey.optional(),
})

export const ClusterCommitModesInput = z.object({ clusterId: ClusterId })
/** What synchronous_commit is set to for databases and roles; everything else has the cluster's. */
export const ClusterCommitModes = z.object({
  commitModes: z.array(CommitModeScope),
  observedAt: z.number(),
})

export const ClusterCommitModeInput = z
  .object({
    clusterId: ClusterId,
    database: z.string().min(1).max(63).nullable().default(null),
    role: z.string().min(1).max(63).nullable().default(null),
    /** null takes it away again. */
    commitMode: CommitMode.nullable(),
    idempotencyKey: IdempotencyKey.optional(),
  })
  .refine((i) => i.database !== null || i.role !== null, 'a database or a role has to be named')
