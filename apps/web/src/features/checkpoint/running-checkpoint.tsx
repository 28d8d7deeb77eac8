'use client'
import { formatDuration } from '@floe/domain'
import { Progress, useNow } from '@floe/ui'
import type { RunningCheckpointView } from './use-checkpoints'

const count = new Intl.NumberFormat('en')

/** How far the running checkpoint is. Its end is known only where PostgreSQL spreads it over a target time. */
export function RunningCheckpoint({ running }: { running: RunningCheckpointView | null }) {
  const now = useNow()
  if (!running) return null
  const elapsed = now === null ? null : Math.max(0, now - running.startedAt)
  const share = elapsed !== null && running.targetMs ? Math.min(1, elapsed / running.targetMs) : null
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-1 rounded-lg border border-line bg-surface px-3 py-2 text-sm shadow-raised">
      <span className="font-medium">
        {running.kind === 'restartpoint' ? 'Restartpoint' : 'Checkpoint'} is running
      </span>
      <span className="text-ink-muted">{running.reason}</span>
      <Progress
        label={`${running.kind} progress, share of the target time`}
        value={share}
        tone="warn"
        className="max-w-48 min-w-24 flex-1"
      />
      <span className="text-ink-muted tabular-nums">
        {elapsed === null ? '–' : formatDuration(elapsed)}
        {running.targetMs ? ` of about ${formatDuration(running.targetMs)}` : ''} ·{' '}
        {running.buffersWritten === null ? '–' : count.format(running.buffersWritten)} buffers written
      </span>
    </div>
  )
}
