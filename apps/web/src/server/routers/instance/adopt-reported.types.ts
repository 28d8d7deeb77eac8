import { HostId, InstanceName } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const InstanceAdoptReportedInput = z.object({
  hostId: HostId,
  /** Its name or its id, as its agent reports them. */
  instance: z.string().min(1).max(63),
  /** What it is to be named here; as its agent names it where left out. */
  name: InstanceName.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})
