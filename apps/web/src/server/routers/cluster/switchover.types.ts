import { ClusterId, InstanceId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const ClusterSwitchoverInput = z.object({
  clusterId: ClusterId,
  /** Who takes over; left out, the best candidate. */
  instanceId: InstanceId.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})

export const ClusterFailoverInput = ClusterSwitchoverInput.extend({
  /** At most so many bytes of WAL may be lost, as typed by a person; `unknown` where it cannot be known. */
  acceptLoss: z
    .union([z.number().int().min(0), z.literal('unknown')])
    .nullable()
    .default(null),
  /** Name of the primary's host, as typed by a person, where it is out of reach and its primary cannot be fenced now. */
  unreachableHost: z.string().max(63).nullable().default(null),
  /** The same of hosts whose instances may have been promoted without the console having heard of it. */
  alsoUnreachable: z.array(z.string().max(63)).max(20).default([]),
})
