import { HostId, InstanceId, InstanceName, OperationId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const InstanceCreateInput = z.object({
  name: InstanceName,
  /** Left out: the only host, or the one with the most free ports. */
  hostId: HostId.optional(),
  /** Written before the first start; names and values as in postgresql.conf. */
  settings: z.record(z.string().min(1).max(63), z.string().max(10_000)).default({}),
  idempotencyKey: IdempotencyKey.optional(),
})
export const InstanceCreate = z.object({
  operationId: OperationId,
  instanceId: InstanceId,
  name: InstanceName,
  user: z.string(),
  database: z.string(),
  /**
   * Of role `postgres`; made for this answer and stored nowhere. null when the same idempotency key was answered before
   * and the password is not known any more.
   */
  password: z.string().nullable(),
})
export type InstanceCreate = z.infer<typeof InstanceCreate>
