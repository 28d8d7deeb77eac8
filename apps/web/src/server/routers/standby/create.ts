import { randomUUID } from 'node:crypto'
import { InstanceId } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { submit } from '../operation/submit'
import { StandbyCreate, StandbyCreateInput } from './standby.types'

/** Orders a copy of the cluster's primary that follows it, on any host. */
export const create = operatorProcedure
  .input(StandbyCreateInput)
  .output(StandbyCreate)
  .mutation(async ({ ctx, input: { idempotencyKey, hostId, ...input } }) => {
    const { operationId, instanceId } = await submit(ctx, {
      kind: 'create-standby',
      input: { ...input, instanceId: InstanceId.parse(randomUUID()) },
      hostId,
      idempotencyKey,
    })
    return { operationId, instanceId }
  })
