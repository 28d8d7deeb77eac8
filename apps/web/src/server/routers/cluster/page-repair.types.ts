import { ClusterId, PageRepair } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const ClusterPageRepairInput = z.object({
  clusterId: ClusterId,
  pageRepair: PageRepair,
  idempotencyKey: IdempotencyKey.optional(),
})
