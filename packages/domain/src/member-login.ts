import { z } from 'zod'

/**
 * Database roles by which members log in at each other. Each name ends in 16 hexadecimal digits that the member's own
 * agent chose: nobody can make a role of that name before Floe does. Rights are only given to a role in the transaction
 * that creates it.
 */
export const MemberLogin = z
  .string()
  .max(63)
  .regex(/^floe_(standby|repair)_[a-z0-9_]+$/, 'must be the role of a member of a cluster')

/** What a role is for: `standby` to receive WAL and to rewind, `repair` to ask for pages. */
export type LoginPurpose = 'standby' | 'repair'

/** The roles that a member logs in with at others, as its agent reports; null for what it never needed. */
export const MemberLogins = z.object({ replication: MemberLogin.nullable(), repair: MemberLogin.nullable() })
export type MemberLogins = z.infer<typeof MemberLogins>

type Member = { name: string; logins?: MemberLogins | null | undefined }

/** A role that anybody could have foreseen: of members whose agent is older, or that have not been renewed since. */
export const foreseeableLogin = (purpose: LoginPurpose, memberName: string) =>
  `floe_${purpose}_${memberName.replaceAll('-', '_')}`

/** A new role; `random` are 16 hexadecimal digits. Long names are cut: the digits distinguish members. */
export const newLogin = (purpose: LoginPurpose, memberName: string, random: string) =>
  `${foreseeableLogin(purpose, memberName).slice(0, 63 - 1 - random.length)}_${random}`

export const purposeOf = (login: string): LoginPurpose =>
  login.startsWith('floe_repair_') ? 'repair' : 'standby'

/** The roles of a member; of one whose agent does not report them, those that were computed from its name. */
export const loginsOf = (m: Member): MemberLogins =>
  m.logins ?? {
    replication: foreseeableLogin('standby', m.name),
    repair: foreseeableLogin('repair', m.name),
  }

/** The role that a member replicates with, or would. */
export const replicationLoginOf = (m: Member): string =>
  loginsOf(m).replication ?? foreseeableLogin('standby', m.name)

/** Whether a member comes as a role that anybody could foresee. */
export const isForeseeable = (role: string, memberName: string): boolean =>
  role === foreseeableLogin(purposeOf(role), memberName)

/**
 * The members that log in at others as a role of which anybody could foresee the name. Of several members, one whose agent
 * reports no roles does too.
 */
export function foreseeableMembers<M extends Member>(
  members: readonly M[],
  pageRepair: { enabled: boolean } | undefined,
): M[] {
  return members.filter((m) => {
    const logins = m.logins ?? (members.length > 1 ? loginsOf(m) : null)
    const roles = [logins?.replication, pageRepair?.enabled === false ? null : logins?.repair]
    return roles.some((role) => role && isForeseeable(role, m.name))
  })
}
