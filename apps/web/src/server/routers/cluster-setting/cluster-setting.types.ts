import {
  ChangeReason,
  ClusterId,
  Fault,
  InstanceId,
  MemberRole,
  OperationId,
  SettingChange,
  SettingImpact,
} from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'
import { SettingHistoryEntry } from '../setting/history.types'
import { SettingRevisionId } from '../setting/revisions.types'

export const ClusterSettingListInput = z.object({
  clusterId: ClusterId,
  /** Only these; left out: those whose order matters, those that Floe set on any member, and those that differ. */
  names: z.array(z.string().max(63)).max(200).optional(),
})
/** A member, and why its settings could not be read. */
export const ClusterSettingMember = z.object({
  instanceId: InstanceId,
  name: z.string(),
  memberRole: MemberRole,
  fault: Fault.nullable(),
})
export const ClusterSettingView = z.object({
  name: z.string(),
  title: z.string().nullable(),
  description: z.string(),
  impact: SettingImpact,
  /** Members take a change in an order: a standby may not have it smaller than its primary. */
  ordered: z.boolean(),
  /** Why it is each member's own and not changed for all at once; null where it is. */
  ownOfMember: z.string().nullable(),
  /** By member, in the order of `members`; null of one that could not be read. */
  values: z.array(
    z
      .object({
        instanceId: InstanceId,
        shown: z.string().nullable(),
        /** Written, and in force after a restart. */
        pending: z.string().nullable(),
      })
      .nullable(),
  ),
  differs: z.boolean(),
  /** Standbys that have it smaller than the primary. */
  tooSmallOn: z.array(z.string()),
})
export type ClusterSettingView = z.infer<typeof ClusterSettingView>
export const ClusterSettingList = z.object({
  /** The primary first. */
  members: z.array(ClusterSettingMember),
  settings: z.array(ClusterSettingView),
  observedAt: z.number(),
})

const Change = z.object({
  clusterId: ClusterId,
  /** A value of null goes back to the default. */
  changes: z.array(SettingChange).min(1).max(100),
})
export const ClusterSettingCheckInput = z.union([
  Change,
  z.object({ clusterId: ClusterId, revisionId: SettingRevisionId }),
])
const Phase = z.object({
  phase: z.enum(['standbys', 'primary', 'replayed']),
  members: z.array(
    z.object({
      instanceId: InstanceId,
      name: z.string(),
      changes: z.array(SettingChange),
      restart: z.boolean(),
    }),
  ),
})
/** What changes would do on every member, said by its own binary, and the order. Nothing was changed. */
export const ClusterSettingCheck = z.object({
  members: z.array(
    ClusterSettingMember.extend({
      results: z.array(
        z.object({
          name: z.string(),
          oldValue: z.string().nullable(),
          newValue: z.string().nullable(),
          impact: SettingImpact,
          fault: Fault.nullable(),
        }),
      ),
    }),
  ),
  phases: z.array(Phase),
  /** Why it would be refused; empty when it would not. */
  faults: z.array(Fault),
  /** What it means for clients, in sentences. */
  notes: z.array(z.string()),
})
export type ClusterSettingCheck = z.infer<typeof ClusterSettingCheck>

export const ClusterSettingSetInput = Change.extend({
  /** False: what needs a restart waits for the next one; refused for settings whose order matters. */
  restart: z.boolean().default(true),
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})

export const ClusterSettingHistoryInput = z.object({
  clusterId: ClusterId,
  name: z.string().max(63).optional(),
  limit: z.number().int().min(1).max(500).default(100),
})
/** Newest first. */
export const ClusterSettingHistory = z.object({
  changes: z.array(SettingHistoryEntry.extend({ instanceId: InstanceId, instanceName: z.string() })),
})

export const ClusterSettingRevisionsInput = z.object({
  clusterId: ClusterId,
  limit: z.number().int().min(1).max(200).default(50),
})
/** What Floe's files held on the members after an operation. */
export const ClusterSettingRevision = z.object({
  revisionId: SettingRevisionId,
  /** Null: as it was found before the first change that is known. */
  operationId: OperationId.nullable(),
  at: z.number(),
  reason: z.string().nullable(),
  actorName: z.string(),
  /** The members that the operation changed. */
  changed: z.array(z.string()),
  /** What going back to it changes, by member; empty where nothing. */
  members: z.array(z.object({ instanceId: InstanceId, name: z.string(), changes: z.array(SettingChange) })),
})
export type ClusterSettingRevision = z.infer<typeof ClusterSettingRevision>
/** Newest first: the first one holds. */
export const ClusterSettingRevisions = z.object({ revisions: z.array(ClusterSettingRevision) })

export const ClusterSettingRollBackInput = z.object({
  clusterId: ClusterId,
  /** One of clusterSetting.revisions. */
  revisionId: SettingRevisionId,
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})
