import { Alert, Button, Card } from '@floe/ui'
import type { Metadata } from 'next'
import { headers } from 'next/headers'
import Link from 'next/link'
import { SetupForm } from '@/auth/setup-form'
import { createContext } from '@/server/context'
import { ports } from '@/server/ports'
import { appRouter } from '@/server/router'

export const metadata: Metadata = { title: 'Set up', referrer: 'no-referrer' }

const dead = {
  used: {
    title: 'This set-up link was already used',
    text: 'It made the owner of this installation. Sign in with the e-mail address and passphrase given then.',
  },
  expired: {
    title: 'This set-up link has expired',
    text: 'Run "./floe up" again: it prints a new link as long as there is no owner.',
  },
  unknown: {
    title: 'This set-up link is not known',
    text: 'Check that it was copied whole, or run "./floe up" again for a new one.',
  },
} as const

export default async function SetupPage({ params }: { params: Promise<{ token: string }> }) {
  const { token } = await params
  const caller = appRouter.createCaller(await createContext(ports(), await headers()))
  const { link, ownerExists } = await caller.setup.status({ token: token.slice(0, 200) })
  if (link === 'valid' && !ownerExists) return <SetupForm token={token} />
  const { title, text } = dead[link === 'valid' || link === null ? 'used' : link]
  return (
    <Card className="w-full max-w-sm">
      <h1 className="mb-3 text-lg font-semibold text-ink">Set up Floe</h1>
      <Alert
        tone="warn"
        title={title}
        actions={
          <Button asChild size="small">
            <Link href="/sign-in">Sign in</Link>
          </Button>
        }
      >
        {text}
      </Alert>
    </Card>
  )
}
