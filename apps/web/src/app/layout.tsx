import './globals.css'
import { GeistMono } from 'geist/font/mono'
import { GeistSans } from 'geist/font/sans'
import type { Metadata, Viewport } from 'next'
import { cookies, headers } from 'next/headers'
import type { ReactNode } from 'react'
import { StyleNonce } from '@/theme/style-nonce'
import { THEME_COOKIE, themeAttribute } from '@/theme/theme-cookie'
import { TRPCReactProvider } from '@/trpc/client'

export const metadata: Metadata = {
  title: { default: 'Floe', template: '%s · Floe' },
  description: 'PostgreSQL instances on your own hosts',
}

export const viewport: Viewport = { width: 'device-width', initialScale: 1, colorScheme: 'light dark' }

/** Every page: fonts, theme and the way to the API. Rendered per request, because each page has its own nonce. */
export default async function RootLayout({ children }: { children: ReactNode }) {
  const nonce = (await headers()).get('x-nonce') ?? undefined
  const theme = themeAttribute((await cookies()).get(THEME_COOKIE)?.value)
  return (
    <html lang="en" data-theme={theme} className={`${GeistSans.variable} ${GeistMono.variable}`}>
      <body>
        <StyleNonce nonce={nonce} />
        <TRPCReactProvider>{children}</TRPCReactProvider>
      </body>
    </html>
  )
}
