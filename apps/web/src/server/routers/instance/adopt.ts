import { InstanceId } from '@floe/domain'
import { z } from 'zod'
import { operatorProcedure } from '../../procedures'
import { IdempotencyKey, OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'

/** Has its host's agent know an instance again that it has lost, and take over its engine without a restart. */
export const adopt = operatorProcedure
  .input(z.object({ instanceId: InstanceId, idempotencyKey: IdempotencyKey.optional() }))
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'adopt-instance', input, idempotencyKey }),
  )
