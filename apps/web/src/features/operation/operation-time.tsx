'use client'
import { formatDuration } from '@floe/domain'
import { useNow } from '@floe/ui'

/** How long something took, or has been taking; a dash before it started. */
export function OperationTime({ startedAt, endedAt }: { startedAt: number | null; endedAt: number | null }) {
  const now = useNow()
  const end = endedAt ?? now
  return (
    <span className="whitespace-nowrap tabular-nums" suppressHydrationWarning>
      {startedAt === null || end === null ? '–' : formatDuration(Math.max(0, end - startedAt))}
    </span>
  )
}
