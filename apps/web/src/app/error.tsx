'use client'
import { FaultAlert } from '@floe/ui'

/** What a page shows when rendering it failed; the server’s own words stay in its log. */
export default function PageError({
  error,
  reset,
}: {
  error: Error & { digest?: string }
  reset: () => void
}) {
  return (
    <main className="mx-auto flex min-h-dvh max-w-lg items-center p-4">
      <FaultAlert
        className="w-full"
        fault={{
          code: 'page.failed',
          message: 'could not show this page',
          detail: error.digest ? `The console logged it under ${error.digest}.` : null,
          hint: 'Try again; if it stays, look into the console’s log with "./floe status".',
        }}
        onRetry={reset}
      />
    </main>
  )
}
