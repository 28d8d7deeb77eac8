import {
  InstanceId,
  OperationId,
  type OperationInput,
  type OperationKind,
  operationRecord,
} from '@floe/domain'
import { type SubmitInput, settingsNamedIn, submitOperation } from '@floe/operations/submit'
import type { Context } from '../../context'
import { requireOperationRole } from '../../operation-role'
import { requireProgramRight } from '../../program-settings'
import type { Account } from '../account/account.types'

/**
 * Submits an operation in the caller's name; returns its ids at once. `settings` names those that it touches where
 * its input does not. Throws `session.role_too_low` where the record says whose it is, and `setting.runs_programs`.
 */
export async function submit<K extends OperationKind>(
  ctx: Context & { actor: Account },
  {
    settings,
    ...operation
  }: Pick<SubmitInput<K>, 'kind' | 'input' | 'asked' | 'hostId' | 'idempotencyKey'> & {
    settings?: readonly string[]
  },
) {
  const { kind, input: ordered } = operation
  const allowed = async (input: OperationInput<K>) => {
    const about = { action: operationRecord(kind).action, objectId: input.instanceId }
    await requireOperationRole(ctx, { kind, input }, about)
    await requireProgramRight(ctx, [...settingsNamedIn(kind, input), ...(settings ?? [])], about)
    return input
  }
  const { operationId, instanceId, input, created } = await submitOperation(ctx.ports.database, {
    ...operation,
    input: typeof ordered === 'function' ? async () => allowed(await ordered()) : await allowed(ordered),
    actor: ctx.actor,
    audit: { ipAddress: ctx.ipAddress, settings },
  })
  return {
    operationId: OperationId.parse(operationId),
    instanceId: InstanceId.parse(instanceId),
    /** Of the first request where the idempotency key was seen before. */
    input,
    created,
  }
}
