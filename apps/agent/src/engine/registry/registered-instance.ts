import {
  InstanceId,
  InstanceLimits,
  InstanceName,
  MemberLogin,
  PrimaryKnown,
  STALL_AFTER_LEAST_MS,
} from '@floe/domain'
import { z } from 'zod'

/**
 * What the agent itself knows of an instance. `expected` is what was last ordered and decides whether a missing
 * process is a stop or a crash; it is written before the order is carried out.
 */
export const RegisteredInstance = z.object({
  version: z.literal(1),
  instanceId: InstanceId,
  name: InstanceName,
  port: z.number().int(),
  enginePrefix: z.string(),
  /** The OS user of its own; left out: that of all instances which have none. */
  user: z.object({ name: z.string(), uid: z.number().int(), gid: z.number().int() }).optional(),
  /** Number of the directory that its postmaster was last seen to work in; a directory keeps it when it is renamed. */
  workedIn: z.string().optional(),
  /** The boot of the machine in which its postmaster was last seen. */
  workedInBoot: z.string().optional(),
  expected: z.enum(['creating', 'stopped', 'running', 'deleting']),
  /** Password of the agent's own role `floe`. */
  agentPassword: z.string(),
  /** Password that it replicates with from other members; made when it is first needed. */
  replicationPassword: z.string().optional(),
  /** The role it is to replicate as, made up here so that nobody foresees it. */
  replicationRole: MemberLogin.optional(),
  /** The role that it followed its last upstream as. */
  followsAs: MemberLogin.optional(),
  /** Password that it asks other members for pages with. */
  repairPassword: z.string().optional(),
  /** The role it asks as, made up here. */
  repairRole: MemberLogin.optional(),
  /** The primary of its cluster on the newest timeline that an order named. */
  primaryKnown: PrimaryKnown.optional().catch(undefined),
  /** How much of the host it may use; left out: all of it. */
  limits: InstanceLimits.optional().catch(undefined),
  /** From when on work without a commit is a stall; left out: what the host says. */
  stallAfterMs: z.number().int().min(STALL_AFTER_LEAST_MS).optional().catch(undefined),
  createdAt: z.number(),
})
export type RegisteredInstance = z.infer<typeof RegisteredInstance>
