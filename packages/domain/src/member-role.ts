import { z } from 'zod'

/** What a member is meant to be. `fenced`: a former primary that must not accept a write until it has been rejoined. */
export const MemberRole = z.enum(['primary', 'standby', 'fenced'])
export type MemberRole = z.infer<typeof MemberRole>

/**
 * The physical slot that a primary keeps for a member. Names of slots allow no hyphen, names of instances no underscore:
 * one can be distinguished from the other.
 */
export const slotNameOf = (instanceName: string) => `floe_${instanceName.replaceAll('-', '_')}`
