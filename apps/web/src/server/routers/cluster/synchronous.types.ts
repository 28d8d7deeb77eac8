import { ClusterId, CommitMode, CommitModeScope, SynchronousStandbys } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

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
