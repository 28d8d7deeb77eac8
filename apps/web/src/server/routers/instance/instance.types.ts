import {
  ChangeReason,
  ClusterId,
  ConnectionForms,
  ConnectionTarget,
  Fault,
  FlashbackLog,
  HostId,
  HostState,
  InstanceId,
  InstanceIntent,
  InstanceLimits,
  InstanceName,
  InstanceRole,
  InstanceState,
  LimitChanges,
  LimitSum,
  LimitsObserved,
  MemberRole,
  OperationId,
  OperationKind,
  OperationState,
  RemoteAccess,
  ScramVerifier,
  SharedServerSeen,
} from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'
import { ProtectionView } from '../protection/protection.types'
import { ShownCheckResult } from '../setting/setting.types'

/** Where an instance is named by a person, its name does as well as its id. */
export const InstanceSummary = z.object({
  instanceId: InstanceId,
  name: z.string(),
  hostId: HostId,
  hostName: z.string(),
  hostState: HostState,
  /** The cluster it belongs to, how many members that has, what this one is meant to be there; whether its primary can be deleted. */
  cluster: z.object({
    clusterId: ClusterId,
    name: z.string(),
    memberRole: MemberRole,
    members: z.number().int(),
    deletionProtected: z.boolean(),
  }),
  intent: InstanceIntent,
  /** As last observed; `unknown` when the host has been silent for 30 s. */
  state: InstanceState,
  /** What the last report said, however old it is. */
  lastState: InstanceState,
  because: z.string().nullable(),
  role: InstanceRole.nullable(),
  engineVersion: z.string().nullable(),
  port: z.number().int().nullable(),
  createdAt: z.number(),
  observedAt: z.number().nullable(),
  /** Age of the observation at the moment of the answer. */
  ageMs: z.number().nullable(),
  /** True from 5 s of age on: what is shown may not hold any more. */
  stale: z.boolean(),
  pendingRestart: z.array(z.string()),
  /** The user of the operating system that it runs as, and whether no other instance does; null where that is not known. */
  user: z.object({ name: z.string(), own: z.boolean(), separable: z.boolean() }).nullable(),
  /** The operation that was to make it and failed, where no engine of it was ever seen: there is nothing but a name. */
  creationFailed: z.object({ operationId: OperationId }).nullable(),
  /** The operation that has not ended yet, where there is one. */
  openOperation: z
    .object({
      operationId: OperationId,
      kind: OperationKind,
      state: OperationState,
      progress: z.number().nullable(),
      message: z.string().nullable(),
    })
    .nullable(),
  /** TPS of the last minute, oldest first, as stored: text for decodePoints() of @floe/domain; empty when nothing is. */
  tps: z.string(),
})
export type InstanceSummary = z.infer<typeof InstanceSummary>

export const InstanceDetail = InstanceSummary.extend({
  systemIdentifier: z.string().nullable(),
  directory: z.string().nullable(),
  startedAt: z.number().nullable(),
  dataChecksums: z.boolean().nullable(),
  /** From when on its work without a commit is a stall, ms; null: an older agent. */
  stallAfterMs: z.number().nullable(),
  timeline: z.number().int().nullable(),
  postmasterPid: z.number().int().nullable(),
  /** Number of the newest sample that is stored. */
  newestSeq: z.number().int().nullable(),
  /** What protects it against torn pages, as last seen; null while it does not run, or without the views. */
  protection: ProtectionView.nullable(),
  /** Its flashback log, as last seen; null while it does not run, or without the views. */
  flashback: FlashbackLog.nullable(),
  /** Whether its sessions share backends, as last seen; null while it does not run, or without the views. */
  sharedServer: SharedServerSeen.nullable(),
  /** How to reach it; the password is never in here. `connectionForms()` of @floe/domain writes all forms. */
  connection: ConnectionTarget.nullable(),
  forms: ConnectionForms.nullable(),
  /** How clients on other hosts come in; null while it does not run, or of an older agent. */
  remoteAccess: RemoteAccess.nullable(),
  /** What is wrong with its processes; null where nothing is, and while its host is not heard of. */
  processFault: Fault.nullable(),
  now: z.number(),
})
export type InstanceDetail = z.infer<typeof InstanceDetail>

export const InstanceAdoptReportedInput = z.object({
  hostId: HostId,
  /** Its name or its id, as its agent reports them. */
  instance: z.string().min(1).max(63),
  /** What it is to be named here; as its agent names it where left out. */
  name: InstanceName.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})

export const InstanceCheckInput = z.object({
  /** Left out: the one that instance.create would choose. */
  hostId: HostId.optional(),
  settings: z
    .record(z.string().min(1).max(63), z.string().max(10_000))
    .refine((settings) => Object.keys(settings).length > 0, 'must name a setting')
    .refine((settings) => Object.keys(settings).length <= 100, 'must name at most 100 settings'),
})
/** Of each setting what the engine says; a fault where instance.create would be refused or the engine would not start. */
export const InstanceCheck = z.object({ hostId: HostId, results: z.array(ShownCheckResult) })
export type InstanceCheck = z.infer<typeof InstanceCheck>

export const InstanceCreateInput = z.object({
  name: InstanceName,
  /** Left out: the only host, or the one with the most free ports. */
  hostId: HostId.optional(),
  /** Written before the first start; names and values as in postgresql.conf. */
  settings: z.record(z.string().min(1).max(63), z.string().max(10_000)).default({}),
  /** In force before the first start; left out: none. */
  limits: LimitChanges.optional(),
  /** Of the password that role `postgres` gets; left out: one is made and answered. */
  passwordVerifier: ScramVerifier.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})
export const InstanceCreate = z.object({
  operationId: OperationId,
  instanceId: InstanceId,
  name: InstanceName,
  user: z.string(),
  database: z.string(),
  /**
   * Of role `postgres`; made for this answer and stored nowhere. null when a verifier of another one was given, or when the
   * same idempotency key was answered before and the password is not known any more.
   */
  password: z.string().nullable(),
})
export type InstanceCreate = z.infer<typeof InstanceCreate>

export const InstanceLimitInput = z.object({
  instanceId: InstanceId,
  /** null takes a limit away, what is left out stays. */
  changes: LimitChanges.refine((changes) => Object.keys(changes).length > 0, 'must name a limit'),
  /** Why; kept in the history. */
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})

export const InstanceLimitsInput = z.object({ instanceId: InstanceId })
export const InstanceLimitsView = z.object({
  /** As its agent confirmed them last. */
  limits: InstanceLimits,
  /** As its agent reported them; null while its host is not heard of, or of an older agent. */
  observed: LimitsObserved.nullable(),
  host: z.object({ name: z.string(), cpus: z.number(), memoryBytes: z.number() }).nullable(),
  /** What all instances of the host may use together, by resource; empty while its size is not known. */
  sums: z.array(LimitSum),
  /** Newest first. */
  history: z.array(
    z.object({
      at: z.number(),
      operationId: OperationId,
      before: InstanceLimits,
      after: InstanceLimits,
      reason: z.string().nullable(),
      actorName: z.string(),
    }),
  ),
})
export type InstanceLimitsView = z.infer<typeof InstanceLimitsView>

export const InstanceListInput = z
  .object({
    /** Part of the name, of the host's name, or a port. */
    search: z.string().max(100).optional(),
  })
  .default({})
export const InstanceList = z.object({ instances: z.array(InstanceSummary), now: z.number() })

/** By id or by name. */
export const InstanceShowInput = z.union([
  z.object({ instanceId: InstanceId }),
  z.object({ name: InstanceName }),
])
