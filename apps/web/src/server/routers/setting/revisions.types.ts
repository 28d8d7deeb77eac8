import { InstanceId, OperationId, SettingChange } from '@floe/domain'
import { z } from 'zod'

/** Digits of a number that may be greater than a browser's. */
export const SettingRevisionId = z.string().regex(/^\d{1,19}$/, 'must be the number of a revision')

export const SettingRevisionsInput = z.object({
  instanceId: InstanceId,
  limit: z.number().int().min(1).max(200).default(50),
})
/** What Floe's file of settings held after a change. */
export const SettingRevision = z.object({
  revisionId: SettingRevisionId,
  /** Null: as it was found before the first change that is known. */
  operationId: OperationId.nullable(),
  at: z.number(),
  reason: z.string().nullable(),
  actor: z.string(),
  actorName: z.string(),
  managed: z.record(z.string(), z.string()),
  /** What going back to it changes; empty for the revision that holds. */
  changes: z.array(SettingChange),
})
export type SettingRevision = z.infer<typeof SettingRevision>
/** Newest first: the first one holds. */
export const SettingRevisions = z.object({ revisions: z.array(SettingRevision) })
