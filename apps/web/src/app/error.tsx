'use client'
import type { Fault } from '@floe/domain'
import { FaultAlert } from '@floe/ui'
import { useRouter } from 'next/navigation'
import { startTransition, useEffect, useState } from 'react'

const LOOK_MS = 2_000

const unreachable: Fault = {
  code: 'database.unreachable',
  message: 'could not reach the control database',
  hint: 'Check it with "./floe status". This page continues once the console answers.',
}

/**
 * What a page shows when rendering it failed; the server's own words stay in its log. Asks the console what is wrong, and
 * shows the page again as soon as the control database is back.
 */
export default function PageError({
  error,
  reset,
}: {
  error: Error & { digest?: string }
  reset: () => void
}) {
  const router = useRouter()
  const [away, setAway] = useState(false)

  useEffect(() => {
    let before = true
    const look = async () => {
      const healthy = await fetch('/healthz').then(
        (r) => r.ok,
        () => false,
      )
      setAway(!healthy)
      if (healthy && !before)
        startTransition(() => {
          router.refresh()
          reset()
        })
      before = healthy
    }
    void look()
    const timer = setInterval(look, LOOK_MS)
    return () => clearInterval(timer)
  }, [reset, router])

  const failed: Fault = {
    code: 'page.failed',
    message: 'could not show this page',
    detail: error.digest ? `The console logged it under ${error.digest}.` : null,
    hint: 'Try again. If the error persists, read the console’s log; "./floe status" shows its path.',
  }
  return (
    <main className="mx-auto flex min-h-dvh max-w-lg items-center p-4">
      <FaultAlert
        className="w-full"
        fault={away ? unreachable : failed}
        onRetry={() =>
          startTransition(() => {
            router.refresh()
            reset()
          })
        }
      />
    </main>
  )
}
