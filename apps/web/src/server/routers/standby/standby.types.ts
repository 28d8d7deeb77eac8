import { ClusterId, HostId, InstanceId, InstanceName, OperationId } from '@floe/domain'
import { z } from 'zod'
import { IdempotencyKey } from '../operation/operation.types'

export const StandbyCreateInput = z.object({
  clusterId: ClusterId,
  name: InstanceName,
  /** Left out: the host that answers and has the most free ports. */
  hostId: HostId.optional(),
  idempotencyKey: IdempotencyKey.optional(),
})
export const StandbyCreate = z.object({ operationId: OperationId, instanceId: InstanceId })

export const StandbyRef = z.object({ instanceId: InstanceId, idempotencyKey: IdempotencyKey.optional() })

export const StandbyRejoinInput = StandbyRef.extend({
  /** What only it had acknowledged is not kept aside: it may be lost. */
  discardOwn: z.boolean().default(false),
})

export const StandbyRemoveInput = StandbyRef.extend({
  /** Typed by the person; must equal the standby's name. */
  confirmName: z.string(),
  keepFiles: z.boolean().default(false),
  /** Name of its host, typed where that cannot be reached: what lies there is left. */
  unreachableHost: z.string().max(63).nullable().default(null),
})
