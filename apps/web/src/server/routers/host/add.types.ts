import { HostId, HostName } from '@floe/domain'
import { z } from 'zod'

export const HostAddInput = z.object({
  name: HostName,
  /** Enrols a host anew that is there: after it was revoked, or away for longer than its certificate was good. */
  again: z.boolean().default(false),
})
export const HostAdd = z.object({
  enrolmentId: z.uuid(),
  hostId: HostId,
  name: HostName,
  /** Made for this answer and stored nowhere; good for one host. */
  token: z.string(),
  expiresAt: z.number(),
  /** sha256 of the installation's authority, by which the host knows that it speaks to this console. */
  authority: z.string(),
  /** What has to be run on the host, in a checkout of Floe. */
  command: z.string(),
  /** True when the console's address is one that only its own machine reaches. */
  onlyLocal: z.boolean(),
})
export type HostAdd = z.infer<typeof HostAdd>
