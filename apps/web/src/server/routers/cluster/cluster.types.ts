import {
  AskedMember,
  ClusterConnectionForms,
  ClusterId,
  ClusterObserved,
  CommitMode,
  Fault,
  HostState,
  InstanceId,
  InstanceState,
  OperationId,
  OperationKind,
  OperationState,
} from '@floe/domain'
import { z } from 'zod'

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
  /** Why it must not fail over by itself, each a reason; empty where it may. */
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
