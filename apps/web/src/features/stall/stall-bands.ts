import { formatDuration } from '@floe/domain'
import type { ChartBand } from '@floe/ui'

type Lasting = { reason: string; startedAt: number; endedAt: number }
type Told = Lasting & { seq: number }

/** Stalls as bands for the chart of transactions; one that lasts is drawn as far as it was seen. */
export const stallBands = (stalls: readonly Told[], lasting: Lasting | null = null): ChartBand[] => [
  ...stalls.map((s) =>
    bandOf(
      `stall-${s.seq}`,
      s,
      `Stall of ${formatDuration(s.endedAt - s.startedAt)}: waited for ${s.reason}`,
    ),
  ),
  ...(lasting ? [bandOf('stall', lasting, `Stall: waits for ${lasting.reason}`)] : []),
]

const bandOf = (key: string, { startedAt, endedAt }: Lasting, label: string): ChartBand => ({
  key,
  phase: 'stall',
  from: startedAt,
  to: endedAt,
  label,
})
