import { type Account, AccountRole } from '../account/account.types'

const atLeast = (role: AccountRole, least: AccountRole) =>
  AccountRole.options.indexOf(role) >= AccountRole.options.indexOf(least)

/** Whose tokens somebody sees and revokes: their own, and an admin everybody's (null). */
export const whoseTokens = ({ role, id }: Account): string | null => (atLeast(role, 'admin') ? null : id)

/**
 * Whether this one may make tokens: a person, or the command line of the machine itself. A token that was made for a program
 * makes none: it would outlive its own end.
 */
export const makesTokens = ({ kind, role }: Account): boolean => kind === 'user' || role === 'owner'
