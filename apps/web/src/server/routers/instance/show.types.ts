import { InstanceId, InstanceName } from '@floe/domain'
import { z } from 'zod'

/** By id or by name. */
export const InstanceShowInput = z.union([
  z.object({ instanceId: InstanceId }),
  z.object({ name: InstanceName }),
])
