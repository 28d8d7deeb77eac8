import { formatDuration } from '@floe/domain'
import type { ChartBand } from '@floe/ui'

type Told = { seq: number; reason: string; startedAt: number; endedAt: number }

/** Stalls as bands for the chart of transactions. */
export const stallBands = (stalls: readonly Told[]): ChartBand[] =>
  stalls.map((s) => ({
    key: `stall-${s.seq}`,
    phase: 'stall',
    from: s.startedAt,
    to: s.endedAt,
    label: `Stall of ${formatDuration(s.endedAt - s.startedAt)}: waited for ${s.reason}`,
  }))

type Waited = { waits: readonly { type: string; event: string; count: number }[] }

/** Shares of what sessions waited for, e.g. `Lock:relation 80 %, IO:WalSync 20 %`. */
export function waitShares({ waits }: Waited): string {
  const all = waits.reduce((sum, w) => sum + w.count, 0)
  return waits
    .slice(0, 3)
    .map((w) => `${w.type}:${w.event} ${Math.round((w.count / all) * 100)} %`)
    .join(', ')
}
