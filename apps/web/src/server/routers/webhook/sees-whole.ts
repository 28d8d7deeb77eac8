import type { Account } from '../account/account.types'

/**
 * Who may read a webhook's whole address, which may hold a token, and why it could not be reached, which reveals the
 * console's network.
 */
export const seesWhole = ({ role }: Account) => role === 'admin' || role === 'owner'
