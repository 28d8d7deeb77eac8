'use client'
import { metricDefinition } from '@floe/telemetry'
import { classNames, formatTime, formatValue, Tooltip } from '@floe/ui'
import { memo } from 'react'
import { overviewReadings } from './reading-definitions'
import type { LiveSample } from './use-telemetry-stream'

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
      aria-label="Latest values"
      className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line shadow-raised sm:grid-cols-4 xl:grid-cols-6 2xl:grid-cols-12"
    >
      {overviewReadings.map(({ metric, label, of, partOf }) => {
        const definition = metricDefinition(metric)
        const value = sample?.values[metric] ?? null
        const whole = of ? (sample?.values[of] ?? null) : null
        const share = partOf ? shareOf(value, sample?.values[partOf.metric] ?? null) : null
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
                  {partOf && share !== null ? (
                    <span className="ml-1.5 text-xs font-normal text-ink-muted">
                      {share} of {partOf.label}
                    </span>
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
  return `${Math.round((part / whole) * 100)} %`
}
