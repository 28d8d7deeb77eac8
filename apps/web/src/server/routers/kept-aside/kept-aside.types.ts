import { InstanceId, KeptAside, KeptAsideName, Lsn } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const KeptAsideListInput = z.object({ instanceId: InstanceId })
export const KeptAsideList = z.object({
  /** The newest first; null where the agent of its host is of a version that keeps nothing aside. */
  keptAside: z.array(KeptAside).nullable(),
})

export const KeptAsideReadInput = z.object({
  instanceId: InstanceId,
  name: KeptAsideName,
  /** As the piece before answered it; null: from the beginning. */
  from: Lsn.nullable().default(null),
  /** Commits and rollbacks only. */
  transactionsOnly: z.boolean().default(false),
})
export const KeptAsideRead = z.object({
  /** As pg_waldump prints them. */
  records: z.array(z.string()),
  /** Where the next piece begins; null: this was the last. */
  next: Lsn.nullable(),
  /** Why the records end early; null where they do not. */
  stopped: z.string().nullable(),
})

export const KeptAsideDropInput = z.object({
  instanceId: InstanceId,
  name: KeptAsideName,
  /** Typed by the person; must equal the instance's name. */
  confirmName: z.string(),
  idempotencyKey: IdempotencyKey.optional(),
})
