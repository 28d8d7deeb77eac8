import { HostId, HostName, InstanceId, InstanceState } from '@floe/domain'
import { z } from 'zod'
import { HostSummary } from './host.types'

export const HostShowInput = z.union([z.object({ hostId: HostId }), z.object({ name: HostName })])
export const HostDetail = z.object({
  host: HostSummary,
  /** Its instances by name, as last observed. */
  instanceList: z.array(
    z.object({
      instanceId: InstanceId,
      name: z.string(),
      /** `unknown` when the last report is too old, or its host was revoked; `lastState` is what that report said. */
      state: InstanceState,
      lastState: InstanceState,
      role: z.string().nullable(),
      port: z.number().int().nullable(),
      engineVersion: z.string().nullable(),
      observedAt: z.number().nullable(),
    }),
  ),
  now: z.number(),
})
export type HostDetail = z.infer<typeof HostDetail>
