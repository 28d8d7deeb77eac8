import { ClusterId } from '@floe/domain'
import { z } from 'zod'
import { operatorProcedure } from '../../procedures'
import { IdempotencyKey, OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { requireCluster } from './find'

/** Gives members of an earlier version roles whose names nobody foresees, while they run. */
export const renewRoles = operatorProcedure
  .input(z.object({ clusterId: ClusterId, idempotencyKey: IdempotencyKey.optional() }))
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, ...input } }) => {
    const { primaryInstanceId } = await requireCluster(ctx.ports.database.pool, input)
    return submit(ctx, {
      kind: 'renew-roles',
      input: { ...input, instanceId: primaryInstanceId },
      asked: input,
      idempotencyKey,
    })
  })
