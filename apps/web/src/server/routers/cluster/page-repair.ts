import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { ClusterPageRepairInput } from './cluster.types'
import { requireCluster } from './find'

/**
 * Orders which members are page repair sources, and sets them on every member. Throws `page_repair.last_source` where
 * the primary writes no page images and would be left without a source.
 */
export const pageRepair = operatorProcedure
  .input(ClusterPageRepairInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, ...input } }) => {
    const { primaryInstanceId } = await requireCluster(ctx.ports.database.pool, input)
    return submit(ctx, {
      kind: 'change-page-repair',
      input: { ...input, instanceId: primaryInstanceId },
      asked: input,
      idempotencyKey,
    })
  })
