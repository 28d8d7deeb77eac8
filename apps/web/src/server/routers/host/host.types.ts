import { EnrolmentState, Fault, HostFacts, HostId, HostState } from '@floe/domain'
import { z } from 'zod'

export const HostSummary = z.object({
  hostId: HostId,
  name: z.string(),
  agentUrl: z.string(),
  /** True for the console's own machine, which needs no token and cannot be revoked. */
  own: z.boolean(),
  /** By the age of the agent's last answer; unknown once it is revoked. */
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
  /** Names of its instances that share a user with others although it could separate them. */
  sharedUser: z.array(z.string()),
  /** When it was enrolled by a token; null for the console's own machine. */
  enrolledAt: z.number().nullable(),
  /** From then on nothing it answers is believed. */
  revokedAt: z.number().nullable(),
  revokedBy: z.string().nullable(),
  /** When its agent's certificate ends; it is renewed long before. null until a controller has issued one. */
  certificateEndsAt: z.number().nullable(),
})
export type HostSummary = z.infer<typeof HostSummary>

/** A one-time token that was given out: for a host that is not there yet, or one that is enrolled anew. */
export const EnrolmentSummary = z.object({
  enrolmentId: z.uuid(),
  hostId: HostId,
  name: z.string(),
  state: EnrolmentState,
  /** Who asked for it. */
  actorName: z.string(),
  createdAt: z.number(),
  expiresAt: z.number(),
  agentUrl: z.string().nullable(),
  fault: Fault.nullable(),
})
export type EnrolmentSummary = z.infer<typeof EnrolmentSummary>
