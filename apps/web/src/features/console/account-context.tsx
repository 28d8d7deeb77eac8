'use client'
import { createContext, type ReactNode, useContext } from 'react'
import type { RouterOutputs } from '@/server/api'

export type Account = RouterOutputs['account']['me']

const AccountContext = createContext<Account | null>(null)

/** Who looks at the page, for everything below. */
export function AccountProvider({ account, children }: { account: Account; children: ReactNode }) {
  return <AccountContext.Provider value={account}>{children}</AccountContext.Provider>
}

export function useAccount(): Account {
  const account = useContext(AccountContext)
  if (!account) throw new Error('useAccount() needs an AccountProvider around it')
  return account
}

/** Whether this person may change things; the console checks it again with every request. */
export function useMayChange(): boolean {
  return useAccount().role !== 'viewer'
}

/** What a button that a viewer cannot use says. */
export const viewerHint = 'Your role is viewer: you can read, but not change anything.'

/** Whether this person may say which hosts belong to the installation. */
export function useMayAdminister(): boolean {
  const { role } = useAccount()
  return role === 'admin' || role === 'owner'
}

/** What a button says that only an administrator can use. */
export const administratorHint = 'Hosts are added and revoked by an owner or admin.'
