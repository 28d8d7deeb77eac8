import { ClusterId, operationRecords } from '@floe/domain'
import { z } from 'zod'
import { adminProcedure } from '../../procedures'
import { IdempotencyKey, OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { requireCluster } from './find'

/** Orders that a cluster is brought back whose members crashed at once and wait for each other. Throws `recover.member_runs`. */
export const recover = adminProcedure
  .input(
    z.object({
      clusterId: ClusterId,
      confirmName: operationRecords['recover-cluster'].input.shape.confirmName,
      backupDirectory: operationRecords['recover-cluster'].input.shape.backupDirectory,
      walDirectory: operationRecords['recover-cluster'].input.shape.walDirectory,
      idempotencyKey: IdempotencyKey.optional(),
    }),
  )
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, ...input } }) => {
    const { primaryInstanceId } = await requireCluster(ctx.ports.database.pool, input)
    return submit(ctx, {
      kind: 'recover-cluster',
      input: { ...input, instanceId: primaryInstanceId },
      asked: input,
      idempotencyKey,
    })
  })
