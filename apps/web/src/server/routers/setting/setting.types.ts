import {
  ChangeReason,
  CheckedSetting,
  ConfirmedSetting,
  Fault,
  HostShare,
  InstanceId,
  MemberRole,
  OperationId,
  ProfileCeiling,
  ProfileLine,
  ProfileName,
  Setting,
  SettingChange,
  SettingImpact,
  SettingScope,
} from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

/**
 * Every procedure takes a scope, one instance or a whole cluster, and answers both in one shape: an instance is a cluster
 * of one. Members stand with the primary first.
 */
export const SettingMember = z.object({ instanceId: InstanceId, name: z.string(), memberRole: MemberRole })
export type SettingMember = z.infer<typeof SettingMember>
/** With why its settings could not be read or checked. */
const AskedMember = SettingMember.extend({ fault: Fault.nullable() })

export const SettingListInput = z.object({
  scope: SettingScope,
  /** Part of the name, the description or the category. */
  search: z.string().max(100).optional(),
  /** Only these. */
  names: z.array(z.string().max(63)).max(200).optional(),
})

const ofMember = {
  value: true,
  shown: true,
  resetValue: true,
  source: true,
  sourceFile: true,
  sourceLine: true,
  pendingRestart: true,
  managedValue: true,
  fileError: true,
} as const
export const MemberSettingValue = Setting.pick(ofMember).extend({
  instanceId: InstanceId,
  /** Written, and in force after a restart. */
  pending: z.string().nullable(),
})
export type MemberSettingValue = z.infer<typeof MemberSettingValue>
export const SettingView = Setting.omit(ofMember).extend({
  impact: SettingImpact,
  /** Our words, for the settings that matter most. */
  title: z.string().nullable(),
  meaning: z.string().nullable(),
  warning: z.string().nullable(),
  /** By member, in the order of `members`; null of one that could not be read. */
  values: z.array(MemberSettingValue.nullable()),
  /** Members take a change in an order: a standby may not have it smaller than its primary. */
  ordered: z.boolean(),
  /** Why it is each member's own and not changed for a whole cluster; null where it is. */
  ownOfMember: z.string().nullable(),
  differs: z.boolean(),
  /** Standbys that have it smaller than the primary. */
  tooSmallOn: z.array(z.string()),
  /** Worth a look across a cluster: its order matters, Floe set it, it differs, or it waits for a restart. */
  notable: z.boolean(),
})
export type SettingView = z.infer<typeof SettingView>
export const SettingList = z.object({
  members: z.array(AskedMember),
  settings: z.array(SettingView),
  observedAt: z.number(),
})

const Changes = z.object({
  scope: SettingScope,
  /** A value of null goes back to the default. */
  changes: z.array(SettingChange).min(1).max(100),
  /**
   * Of a cluster, where members are restarted for what needs it. False: it waits for the next restart; refused for settings
   * whose order matters. Changes of one instance never restart it.
   */
  restart: z.boolean().default(true),
})
/** Digits of a number that may be greater than a browser's. */
const RevisionId = z.string().regex(/^\d{1,19}$/, 'must be the number of a revision')

/** Of changes, or of a roll-back. */
export const SettingCheckInput = z.union([Changes, z.object({ scope: SettingScope, revisionId: RevisionId })])
/** What the binary of a member says a change would do; the numbers are for the order of the members. */
export const SettingCheckResult = CheckedSetting.partial({ oldNumber: true, newNumber: true })
export const ShownCheckResult = SettingCheckResult.omit({ oldNumber: true, newNumber: true })
/** What changes would do on every member, and in which order. Nothing was changed. */
export const SettingCheck = z.object({
  members: z.array(AskedMember.extend({ results: z.array(ShownCheckResult) })),
  phases: z.array(
    z.object({
      phase: z.enum(['standbys', 'primary', 'replayed']),
      members: z.array(
        z.object({
          instanceId: InstanceId,
          name: z.string(),
          changes: z.array(SettingChange),
          restart: z.boolean(),
        }),
      ),
    }),
  ),
  /** Why it would be refused; empty when it would not. */
  faults: z.array(Fault),
  /** What it brings along that nobody may want, each once. */
  warnings: z.array(Fault),
  /** What it means for clients, in sentences. */
  notes: z.array(z.string()),
})
export type SettingCheck = z.infer<typeof SettingCheck>

export const SettingSetInput = Changes.extend({
  /** Why; kept in the history. */
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})

export const SettingHistoryInput = z.object({
  scope: SettingScope,
  name: z.string().max(63).optional(),
  limit: z.number().int().min(1).max(500).default(100),
})
/** A change as the instance confirmed it. */
export const SettingHistoryEntry = ConfirmedSetting.extend({
  operationId: OperationId,
  instanceId: InstanceId,
  instanceName: z.string(),
  at: z.number(),
  /** Why, in the words of who asked. */
  reason: z.string().nullable(),
  actor: z.string(),
  actorName: z.string(),
})
/** Newest first. */
export const SettingHistory = z.object({
  members: z.array(SettingMember),
  changes: z.array(SettingHistoryEntry),
})

export const SettingRevisionsInput = z.object({
  scope: SettingScope,
  limit: z.number().int().min(1).max(200).default(50),
})
/** What Floe's files held on the members after an operation. */
export const SettingRevision = z.object({
  revisionId: RevisionId,
  /** Null: as it was found before the first change that is known. */
  operationId: OperationId.nullable(),
  at: z.number(),
  reason: z.string().nullable(),
  actor: z.string(),
  actorName: z.string(),
  /** The members that the operation changed. */
  changed: z.array(z.string()),
  members: z.array(
    SettingMember.extend({
      managed: z.record(z.string(), z.string()),
      /** What rolling back to it changes; empty where nothing, as of the current one. */
      changes: z.array(SettingChange),
    }),
  ),
})
export type SettingRevision = z.infer<typeof SettingRevision>
/** Newest first: the first one is current. */
export const SettingRevisions = z.object({
  members: z.array(SettingMember),
  revisions: z.array(SettingRevision),
})

export const SettingRollBackInput = z.object({
  scope: SettingScope,
  /** One of setting.revisions. */
  revisionId: RevisionId,
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})

export const SettingProfileInput = z.object({
  scope: SettingScope,
  profile: ProfileName,
  /** The part of the host that is meant for it; left out: the host divided by its instances. */
  share: HostShare.optional(),
})
export const SettingProfile = z.object({
  /** The smallest host of the members, from whose size the values are computed. */
  host: z.object({
    hostName: z.string(),
    observedAt: z.number(),
    memoryBytes: z.number(),
    cpus: z.number().int(),
    instances: z.number().int(),
  }),
  share: HostShare,
  /** The lowest limits of the members. */
  ceiling: ProfileCeiling,
  lines: z.array(ProfileLine),
})

export const SettingDriftInput = z.object({ scope: SettingScope })
/** A setting that a file says otherwise than Floe left it: somebody edited the file or used ALTER SYSTEM. */
export const SettingDriftEntry = z.object({
  instanceId: InstanceId,
  instanceName: z.string(),
  name: z.string(),
  /** Its name in the data directory. */
  file: z.string(),
  /** Where it stands now; null where the line is gone. */
  line: z.number().int().nullable(),
  /** The values of the file's line before and now; null: there is none. */
  was: z.string().nullable(),
  is: z.string().nullable(),
})
export type SettingDriftEntry = z.infer<typeof SettingDriftEntry>
export const SettingDrift = z.object({
  /** `observedAt`: when its agent reported it, ms since the epoch; null where it never has. */
  members: z.array(SettingMember.extend({ observedAt: z.number().nullable() })),
  drift: z.array(SettingDriftEntry),
})
/** Drift is resolved where it is: on one instance. */
export const SettingResolveInput = z.object({
  instanceId: InstanceId,
  reason: ChangeReason.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})
