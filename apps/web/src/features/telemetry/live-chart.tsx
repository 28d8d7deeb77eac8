'use client'
import { TimeSeriesChart } from '@floe/ui'
import { type ComponentProps, useMemo } from 'react'
import { type ChartDefinition, linesShown, metricsOf } from './chart-definitions'
import type { TimelineRow } from './timeline'
import { useStaggered } from './use-staggered'

const noBands: NonNullable<ComponentProps<typeof TimeSeriesChart>['bands']> = []

/** One chart that draws what it gets a little after the one before it. */
export function LiveChart({
  chart,
  rows,
  from,
  to,
  bands = noBands,
  generation,
  delayMs,
  loading,
  staleMs,
  instance,
  onZoom,
}: {
  chart: ChartDefinition
  rows: readonly TimelineRow[]
  from: number
  to: number
  bands?: ComponentProps<typeof TimeSeriesChart>['bands']
  generation: string
  delayMs: number
  loading: boolean
  staleMs: number | null
  instance: { instanceId: string; name: string }
  onZoom: (from: number, to: number) => void
}) {
  const next = useMemo(() => ({ generation, rows, from, to, bands }), [generation, rows, from, to, bands])
  const shown = useStaggered(next, delayMs)
  // the same lines stay the same array, so that the plot is drawn only when something changes
  const keys = linesShown(chart, shown.rows)
    .map((line) => line.key)
    .join()
  const series = useMemo(
    () => chart.series.filter((line) => keys.split(',').includes(line.key)),
    [chart, keys],
  )
  const csv = new URLSearchParams({
    instanceId: instance.instanceId,
    from: String(Math.round(shown.from)),
    to: String(Math.round(shown.to)),
    metrics: metricsOf(chart).join(','),
  })
  return (
    <TimeSeriesChart
      title={chart.title}
      description={chart.description}
      unit={chart.unit}
      stacked={chart.stacked}
      leastTop={chart.leastTop}
      clipsExceptions={chart.clipsExceptions}
      series={series}
      rows={shown.rows}
      from={shown.from}
      to={shown.to}
      bands={shown.bands}
      loading={loading}
      // whole seconds are enough, and keep the chart from being drawn more often
      staleMs={staleMs === null ? null : Math.floor(staleMs / 1_000) * 1_000}
      fileName={instance.name}
      csvHref={`/api/export/samples.csv?${csv}`}
      onZoom={onZoom}
    />
  )
}
