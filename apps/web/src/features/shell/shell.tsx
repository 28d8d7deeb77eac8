'use client'
import { Logo, ToastProvider, TooltipProvider } from '@floe/ui'
import Link from 'next/link'
import type { ReactNode } from 'react'
import { type Account, AccountProvider } from '../console/account-context'
import { IncidentBell } from '../incident/incident-bell'
import { AccountMenu } from './account-menu'
import { Navigation } from './navigation'
import { ThemeMenu } from './theme-menu'

/** What stands around every screen: header, places, the way to skip them. */
export function Shell({
  account,
  theme,
  children,
}: {
  account: Account
  theme: 'system' | 'light' | 'dark'
  children: ReactNode
}) {
  return (
    <AccountProvider account={account}>
      <ToastProvider>
        <TooltipProvider>
          <a
            href="#content"
            className="sr-only z-50 rounded-md bg-accent-strong px-3 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
          >
            Skip to the content
          </a>
          <header className="sticky top-0 z-30 flex h-12 items-center justify-between border-b border-line bg-surface px-3 md:px-4">
            <Link href="/instances" aria-label="Floe, to the instances" className="flex rounded-md">
              <Logo />
            </Link>
            <div className="flex items-center gap-1">
              <IncidentBell />
              <ThemeMenu initial={theme} />
              <AccountMenu />
            </div>
          </header>
          <div className="flex min-h-[calc(100dvh-3rem)]">
            <Navigation at="side" />
            <main
              id="content"
              tabIndex={-1}
              className="min-w-0 flex-1 px-4 pt-4 pb-24 outline-none md:px-6 md:pb-10"
            >
              <div className="mx-auto max-w-[1720px]">{children}</div>
            </main>
          </div>
          <Navigation at="foot" />
        </TooltipProvider>
      </ToastProvider>
    </AccountProvider>
  )
}
