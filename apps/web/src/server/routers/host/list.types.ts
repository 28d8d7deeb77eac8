import { Fault, HostFacts, HostId, HostState } from '@floe/domain'
import { z } from 'zod'

export const HostSummary = z.object({
  hostId: HostId,
  name: z.string(),
  agentUrl: z.string(),
  /** By the age of the agent's last answer. */
  state: HostState,
  observedAt: z.number().nullable(),
  ageMs: z.number().nullable(),
  agentVersion: z.string().nullable(),
  contractVersion: z.string().nullable(),
  capabilities: z.array(z.string()),
  facts: HostFacts.nullable(),
  /** Why its agent could not be reached, where it could not. */
  fault: Fault.nullable(),
  instances: z.number().int(),
})
export type HostSummary = z.infer<typeof HostSummary>
export const HostList = z.object({ hosts: z.array(HostSummary), now: z.number() })
