import { type Account, mayAsMuch } from '../account/account.types'

/** Whose tokens somebody sees and revokes: their own, and an admin everybody's (null). */
export const whoseTokens = ({ role, id }: Account): string | null => (mayAsMuch(role, 'admin') ? null : id)

/**
 * Whether this one may make tokens: a person, or the command line of the machine itself. A token that was made for a program
 * makes none: it would outlive its own end.
 */
export const makesTokens = ({ kind, role }: Account): boolean => kind === 'user' || role === 'owner'
