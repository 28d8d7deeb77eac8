import { AutomaticFailover, ClusterId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const ClusterAutomaticInput = z.object({
  clusterId: ClusterId,
  /** Times in ms; null: it does not fail over by itself. */
  automatic: AutomaticFailover.nullable(),
  idempotencyKey: IdempotencyKey.optional(),
})
