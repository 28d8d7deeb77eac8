import { InstanceId, OperationId, type OperationKind } from '@floe/domain'
import { type SubmitInput, submitOperation } from '@floe/operations/submit'
import type { Context } from '../../context'
import type { Account } from '../account/me.types'

/** Submits an operation in the name of whoever asks; answers its ids at once. */
export async function submit<K extends OperationKind>(
  ctx: Context & { actor: Account },
  operation: Pick<SubmitInput<K>, 'kind' | 'input' | 'hostId' | 'idempotencyKey'>,
) {
  const { operationId, instanceId, input, created } = await submitOperation(ctx.ports.database, {
    ...operation,
    actor: ctx.actor,
    audit: { ipAddress: ctx.ipAddress },
  })
  return {
    operationId: OperationId.parse(operationId),
    instanceId: InstanceId.parse(instanceId),
    /** Of the first request where the idempotency key was seen before. */
    input,
    created,
  }
}
