import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { ClusterAutomaticInput } from './cluster.types'
import { requireCluster } from './find'

/**
 * Orders whether and how a cluster fails over automatically. Refused with the first of automaticBlockers() (`automatic.…`), which
 * `cluster.show` lists.
 */
export const automatic = operatorProcedure
  .input(ClusterAutomaticInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, ...input } }) => {
    const { primaryInstanceId } = await requireCluster(ctx.ports.database.pool, input)
    return submit(ctx, {
      kind: 'change-automatic',
      input: { ...input, instanceId: primaryInstanceId },
      asked: input,
      idempotencyKey,
    })
  })
