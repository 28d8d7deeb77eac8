import { formatDuration } from '@floe/domain'
import type { ChartBand } from '@floe/ui'

type Told = {
  seq: number
  kind: string
  reason: string
  startedAt: number | null
  completedAt: number
  writeMs: number
  syncMs: number
  totalMs: number
}
type Running = { kind: string; reason: string; startedAt: number }

/**
 * Checkpoints as bands for the charts: the write phase, then the sync phase. A start that the log does not contain is
 * reckoned from the end. One that is running is drawn as writing up to `now`.
 */
export function checkpointBands(
  checkpoints: readonly Told[],
  running: Running | null,
  now: number,
): ChartBand[] {
  const bands: ChartBand[] = []
  for (const c of checkpoints) {
    const startedAt = c.startedAt ?? c.completedAt - c.totalMs
    const written = startedAt + c.writeMs
    const about = `${c.kind}: ${c.reason}`
    bands.push(
      {
        key: `${c.seq}-write`,
        phase: 'write',
        from: startedAt,
        to: written,
        label: `${about}, write ${formatDuration(c.writeMs)}`,
      },
      {
        key: `${c.seq}-sync`,
        phase: 'sync',
        from: written,
        to: written + c.syncMs,
        label: `${about}, sync ${formatDuration(c.syncMs)}`,
      },
    )
  }
  if (running && running.startedAt <= now)
    bands.push({
      key: 'running',
      phase: 'write',
      from: running.startedAt,
      to: now,
      label: `${running.kind} is running: ${running.reason}`,
    })
  return bands
}
