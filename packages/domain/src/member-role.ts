import { z } from 'zod'

/** What a member is meant to be. `fenced`: a former primary that must not accept a write until it has been rejoined. */
export const MemberRole = z.enum(['primary', 'standby', 'fenced'])
export type MemberRole = z.infer<typeof MemberRole>

type Fenceable = {
  /** Why it must not start, as its agent reported it; null while it has not. */
  fenced: object | null
}
/** One that must not accept a write: it is called fenced only where its agent has reported that it is. */
export const fencedWords = ({ fenced }: Fenceable): 'fenced' | 'to be fenced' =>
  fenced === null ? 'to be fenced' : 'fenced'

/** The role of a member as it is shown. */
export const shownRole = (member: Fenceable & { memberRole: MemberRole }) =>
  member.memberRole === 'fenced' ? fencedWords(member) : member.memberRole

/**
 * The physical slot that a primary keeps for a member. Names of slots allow no hyphen, names of instances no underscore:
 * one can be distinguished from the other.
 */
export const slotNameOf = (instanceName: string) => `floe_${instanceName.replaceAll('-', '_')}`
