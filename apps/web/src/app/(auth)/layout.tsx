import { Logo } from '@floe/ui'
import type { ReactNode } from 'react'

/** Pages before there is a session: one card in the middle. */
export default function AuthLayout({ children }: { children: ReactNode }) {
  return (
    <main className="flex min-h-dvh flex-col items-center justify-center gap-5 bg-canvas p-4">
      <Logo />
      {children}
    </main>
  )
}
