import { cookies } from 'next/headers'
import type { ReactNode } from 'react'
import { Shell } from '@/features/shell/shell'
import { requireSession } from '@/server/session'
import { THEME_COOKIE, themeAttribute } from '@/theme/theme-cookie'

/** Everything behind the sign-in. */
export default async function ConsoleLayout({ children }: { children: ReactNode }) {
  const account = await requireSession()
  const theme = themeAttribute((await cookies()).get(THEME_COOKIE)?.value) ?? 'system'
  return (
    <Shell account={account} theme={theme}>
      {children}
    </Shell>
  )
}
