'use client'
import { Button, Menu, MenuItem, MenuLabel, MenuSeparator, useToast } from '@floe/ui'
import { CircleUser, KeyRound, LogOut } from 'lucide-react'
import Link from 'next/link'
import { signOut } from '@/auth/session-client'
import { useAccount } from '../console/account-context'

/** Who is signed in, and the way out. */
export function AccountMenu() {
  const account = useAccount()
  const toast = useToast()
  async function leave() {
    const fault = await signOut()
    if (fault) toast({ tone: 'bad', title: fault.message, description: fault.detail ?? undefined })
    // a full load: nothing of this session stays in memory
    else window.location.assign('/sign-in')
  }
  return (
    <Menu
      trigger={
        <Button variant="quiet" aria-label={`Account: ${account.name}`} title={account.email ?? account.name}>
          <CircleUser aria-hidden />
          <span className="hidden max-w-32 truncate md:inline">{account.name}</span>
        </Button>
      }
    >
      <MenuLabel>
        <span className="block text-sm font-medium text-ink">{account.name}</span>
        {account.email ? <span className="block">{account.email}</span> : null}
        <span className="block">role: {account.role}</span>
      </MenuLabel>
      <MenuSeparator />
      <MenuItem asChild>
        <Link href="/account">
          <KeyRound aria-hidden />
          Account
        </Link>
      </MenuItem>
      <MenuItem onSelect={() => void leave()}>
        <LogOut aria-hidden />
        Sign out
      </MenuItem>
    </Menu>
  )
}
