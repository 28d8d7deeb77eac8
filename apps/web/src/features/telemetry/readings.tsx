'use client'
import { type MetricName, metricDefinition } from '@floe/telemetry'
import { classNames, formatTime, formatValue, Tooltip } from '@floe/ui'
import { memo } from 'react'
import type { LiveSample } from './use-telemetry-stream'

const shown: readonly { metric: MetricName; label: string; of?: MetricName }[] = [
  { metric: 'tps', label: 'TPS' },
  { metric: 'xact_active_time', label: 'Mean transaction' },
  { metric: 'wal_bytes', label: 'WAL' },
  { metric: 'wal_fpi_bytes', label: 'Full-page images' },
  { metric: 'io_read_bytes', label: 'Read' },
  { metric: 'io_write_bytes', label: 'Write' },
  { metric: 'cache_hit_ratio', label: 'Cache hit' },
  { metric: 'connections_total', label: 'Connections', of: 'connections_max' },
  { metric: 'process_cpu', label: 'Processor' },
  { metric: 'process_memory', label: 'Memory' },
  { metric: 'locks_waiting', label: 'Locks waiting' },
  { metric: 'disk_free', label: 'Disk free', of: 'disk_size' },
]

/** The newest sample as numbers; each with unit, and with time and source in its tooltip. Unknown is a dash. */
export const Readings = memo(function Readings({
  sample,
  stale,
}: {
  sample: LiveSample | null
  stale: boolean
}) {
  return (
    <dl
      aria-label="Newest values"
      className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line shadow-raised sm:grid-cols-4 xl:grid-cols-6 2xl:grid-cols-12"
    >
      {shown.map(({ metric, label, of }) => {
        const definition = metricDefinition(metric)
        const value = sample?.values[metric] ?? null
        const whole = of ? (sample?.values[of] ?? null) : null
        const share = metric === 'wal_fpi_bytes' ? shareOf(value, sample?.values.wal_bytes ?? null) : null
        return (
          <div key={metric} className="min-w-0 bg-surface px-3 py-2">
            <dt className="truncate text-xs text-ink-muted">{label}</dt>
            <dd className="mt-0.5">
              <Tooltip
                content={`${definition.help}\nSource: ${definition.source}\n${sample ? `at ${formatTime(sample.at)}` : 'not known yet'}`}
              >
                <button
                  type="button"
                  data-testid={`reading-${metric}`}
                  data-value={value ?? ''}
                  className={classNames(
                    'block max-w-full cursor-help truncate rounded-sm text-left text-base font-semibold tabular-nums',
                    stale ? 'text-ink-faint' : 'text-ink',
                  )}
                >
                  {formatValue(value, definition.unit)}
                  {whole !== null && value !== null && of ? (
                    <span className="text-xs font-normal text-ink-muted">
                      {' '}
                      of {formatValue(whole, metricDefinition(of).unit)}
                    </span>
                  ) : null}
                  {share !== null ? (
                    <span className="ml-1.5 text-xs font-normal text-ink-muted">{share}</span>
                  ) : null}
                </button>
              </Tooltip>
            </dd>
          </div>
        )
      })}
    </dl>
  )
})

function shareOf(part: number | null, whole: number | null): string | null {
  if (part === null || whole === null || whole <= 0) return null
  return `${Math.round((part / whole) * 100)} % of WAL`
}
