import { Button, EmptyState } from '@floe/ui'
import Link from 'next/link'

export default function NotFound() {
  return (
    <main className="flex min-h-dvh items-center justify-center bg-canvas p-4">
      <EmptyState
        title="This page does not exist"
        action={
          <Button asChild>
            <Link href="/instances">Go to Instances</Link>
          </Button>
        }
      >
        The address may be mistyped, or the object may have been deleted.
      </EmptyState>
    </main>
  )
}
