'use client'
import { formatDuration } from '@floe/domain'
import { Clock, FileDown, ImageDown, Info, TableProperties } from 'lucide-react'
import { memo, type ReactNode, useId, useMemo, useRef, useState } from 'react'
import { formatTime } from '../age'
import { Badge } from '../badge'
import { Button } from '../button'
import { classNames } from '../class-names'
import { Skeleton } from '../skeleton'
import { Tooltip } from '../tooltip'
import { useElementWidth } from '../use-element-width'
import { formatValue, unitWords } from './axis'
import { ChartTable } from './chart-table'
import type { ChartBand } from './checkpoint-band'
import { useCursor } from './cursor'
import { valuesAbove, withMaximum } from './drawn'
import { chartsToPng, download } from './export-png'
import { Plot } from './plot'
import { PointerLayer } from './pointer-layer'
import { type ChartRow, type ChartSeries, type ChartUnit, lastValue, presentValue } from './series'

export { ChartCursor } from './cursor'

export type TimeSeriesChartProps = {
  /** Also the accessible name. */
  title: string
  /** What is drawn and over what it is averaged, in one sentence. */
  description?: string
  unit: ChartUnit
  series: readonly ChartSeries[]
  /** In order of time; a row of nulls ends the lines before it. */
  rows: readonly ChartRow[]
  from: number
  to: number
  /** Areas on top of each other; a series of kind `line` is drawn over them. */
  stacked?: boolean
  bands?: readonly ChartBand[]
  height?: number
  leastTop?: number
  /** One or two values far above all others leave the chart at its top and are named in words, instead of ruining its scale. */
  clipsExceptions?: boolean
  /** A value that is older than the newest row by more than this is not the present one; default 0. */
  presentWithinMs?: number
  loading?: boolean
  /** Age of the newest value where it is too old for what the chart claims to show; null when fresh. */
  staleMs?: number | null
  onZoom?: (from: number, to: number) => void
  csvHref?: string
  /** Beginning of the names of exported files, e.g. the instance's name. */
  fileName?: string
  note?: ReactNode
  className?: string
}

/**
 * A chart over time with its title, unit, legend with the newest values, shared cursor, drag zoom, table of the same
 * numbers, and export. Memoised: give it stable arrays.
 */
export const TimeSeriesChart = memo(function TimeSeriesChart({
  title,
  description,
  unit,
  series,
  rows,
  from,
  to,
  stacked = false,
  bands = none,
  height = 168,
  leastTop,
  clipsExceptions = false,
  presentWithinMs = 0,
  loading,
  staleMs = null,
  onZoom,
  csvHref,
  fileName,
  note,
  className,
}: TimeSeriesChartProps) {
  const id = useId()
  const cursor = useCursor()
  const [box, width] = useElementWidth<HTMLDivElement>()
  const figure = useRef<HTMLElement | null>(null)
  const [asTable, setAsTable] = useState(false)
  const empty = useMemo(() => series.every((s) => lastValue(rows, s.key) === null), [series, rows])

  const clipped = useMemo(
    () => (clipsExceptions ? valuesAbove(series, rows, from, to) : null),
    [clipsExceptions, series, rows, from, to],
  )

  // shading alone shows no number: the table has it
  const columns = useMemo(() => {
    const shaded = withMaximum(series, rows)
    return series.flatMap((s) => {
      const { maximumKey } = s
      const of = shaded.includes(s as (typeof shaded)[number])
      return of && maximumKey ? [s, { ...s, key: maximumKey, label: `${s.label}, largest` }] : [s]
    })
  }, [series, rows])

  async function exportPng() {
    if (!figure.current) return
    const subtitle = `${formatTime(from)} – ${formatTime(to)} · ${unitWords[unit]}`
    download(
      await chartsToPng([figure.current], { title: fileName ?? '', subtitle }),
      `${slug(fileName, title)}.png`,
    )
  }

  return (
    <figure
      ref={figure}
      aria-labelledby={`${id}-title`}
      className={classNames(
        'group/chart m-0 flex min-w-0 flex-col rounded-lg border border-line bg-surface text-ink shadow-raised',
        className,
      )}
    >
      <figcaption className="flex items-center justify-between gap-2 px-3 pt-1.5">
        <div className="flex min-w-0 items-center gap-1.5">
          <span id={`${id}-title`} data-chart-title className="text-[13px] font-semibold">
            {title}
          </span>
          <Tooltip content={<About series={series} unit={unit} description={description} />}>
            <button
              type="button"
              aria-label={`About ${title}: source and unit`}
              className="rounded-sm p-0.5 text-ink-faint hover:text-ink"
            >
              <Info aria-hidden className="size-3.5" />
            </button>
          </Tooltip>
          {staleMs !== null ? (
            <Badge className="border-dashed">
              <Clock aria-hidden />
              stale · {formatDuration(staleMs)}
            </Badge>
          ) : null}
        </div>
        <div className="flex shrink-0 items-center opacity-70 group-hover/chart:opacity-100 focus-within:opacity-100">
          <Button
            variant="quiet"
            size="icon-small"
            aria-label={`${title} as table`}
            title={asTable ? 'Show the chart' : 'Show as table'}
            aria-pressed={asTable}
            className="aria-pressed:bg-accent-soft aria-pressed:text-accent"
            onClick={() => setAsTable(!asTable)}
          >
            <TableProperties aria-hidden />
          </Button>
          <Button
            variant="quiet"
            size="icon-small"
            aria-label={`${title} as PNG`}
            title="Save as PNG"
            disabled={asTable || empty}
            onClick={exportPng}
          >
            <ImageDown aria-hidden />
          </Button>
          {csvHref ? (
            <Button
              variant="quiet"
              size="icon-small"
              asChild
              aria-label={`${title} as CSV`}
              title="Save as CSV"
            >
              <a href={csvHref} download={`${slug(fileName, title)}.csv`}>
                <FileDown aria-hidden />
              </a>
            </Button>
          ) : null}
        </div>
      </figcaption>
      <Legend
        series={series}
        rows={rows}
        unit={unit}
        bands={bands}
        stale={staleMs !== null}
        presentWithinMs={presentWithinMs}
        above={clipped?.above ?? noValues}
        shaded={columns.length > series.length}
      />
      <div
        ref={box}
        className={classNames('relative mt-auto px-1 pb-1', staleMs !== null && 'opacity-50 grayscale')}
        style={{ minHeight: height }}
      >
        {asTable ? (
          <ChartTable
            title={title}
            series={columns}
            rows={rows}
            unit={unit}
            from={from}
            to={to}
            height={height}
          />
        ) : loading ? (
          <div role="status" aria-label={`Loading ${title}`} style={{ height }} className="p-3">
            <Skeleton className="size-full" />
          </div>
        ) : width > 0 ? (
          <div aria-hidden={empty ? undefined : true} className="absolute inset-0 pl-1">
            {empty ? (
              <p className="flex h-full items-center justify-center text-sm text-ink-muted">
                No values in this range
              </p>
            ) : (
              <Plot
                series={series}
                rows={rows}
                unit={unit}
                stacked={stacked}
                from={from}
                to={to}
                width={width - 8}
                height={height}
                bands={bands}
                leastTop={leastTop}
                clipAt={clipped?.top ?? null}
              />
            )}
          </div>
        ) : null}
        {!asTable && !loading && width > 0 && !empty ? (
          <div className="absolute inset-0 pl-1">
            <div className="relative" style={{ height }}>
              <PointerLayer
                title={title}
                series={series}
                rows={rows}
                unit={unit}
                from={from}
                to={to}
                width={width - 8}
                height={height}
                bands={bands}
                cursor={cursor}
                onZoom={onZoom}
              />
            </div>
          </div>
        ) : null}
      </div>
      {note ? <p className="px-3 pb-2 text-xs text-ink-muted">{note}</p> : null}
    </figure>
  )
})

const none: readonly ChartBand[] = []
const noValues: readonly { at: number; value: number }[] = []

const Legend = memo(function Legend({
  series,
  rows,
  unit,
  bands,
  stale,
  presentWithinMs,
  above,
  shaded,
}: {
  series: readonly ChartSeries[]
  rows: readonly ChartRow[]
  unit: ChartUnit
  bands: readonly ChartBand[]
  stale: boolean
  presentWithinMs: number
  above: readonly { at: number; value: number }[]
  shaded: boolean
}) {
  return (
    <ul
      data-chart-legend
      className="flex min-h-5 flex-wrap gap-x-3 gap-y-0.5 px-3 pt-0.5 text-xs text-ink-muted"
    >
      {series.map((s) => {
        const last = lastValue(rows, s.key)
        // what was is not what is: a value of the past stands in the tooltip only
        const now = stale || s.ended ? null : presentValue(rows, s.key, presentWithinMs)
        return (
          <li key={s.key} className="flex items-center gap-1.5">
            <span
              aria-hidden
              data-mark
              className="size-2 rounded-xs"
              style={{ background: `var(--series-${s.color})`, filter: stale ? 'grayscale(1)' : undefined }}
            />
            {s.label}
            <span
              className={classNames('font-medium tabular-nums', stale ? 'text-ink-muted' : 'text-ink')}
              title={
                now
                  ? `at ${formatTime(now.at)}`
                  : last
                    ? `not known now; ${formatValue(last.value, unit)} at ${formatTime(last.at)}`
                    : 'not known'
              }
            >
              {formatValue(now?.value, unit)}
            </span>
          </li>
        )
      })}
      {above.length > 0 ? (
        <li title={above.map((v) => `${formatValue(v.value, unit)} at ${formatTime(v.at)}`).join('\n')}>
          <span aria-hidden>↑ </span>
          {above.length === 1 ? '1 value' : `${above.length} values`} above the axis, up to{' '}
          {formatValue(above[0]?.value, unit)}
        </li>
      ) : null}
      {shaded ? <li>shaded up to the largest value</li> : null}
      {bands.some((band) => band.phase !== 'stall') ? (
        <li className="flex items-center gap-1.5">
          <span aria-hidden className="flex overflow-hidden rounded-xs">
            <span data-mark className="h-2 w-2 bg-band-write/50" />
            <span className="h-2 w-1 bg-band-sync" />
          </span>
          checkpoint write | sync
        </li>
      ) : null}
      {bands.some((band) => band.phase === 'stall') ? (
        <li className="flex items-center gap-1.5">
          <span aria-hidden data-mark className="h-2 w-2 rounded-xs bg-band-stall/40" />
          stall
        </li>
      ) : null}
    </ul>
  )
})

function About({
  series,
  unit,
  description,
}: {
  series: readonly ChartSeries[]
  unit: ChartUnit
  description?: string
}) {
  return (
    <span className="flex flex-col gap-1">
      {description ? <span>{description}</span> : null}
      <span className="text-ink-muted">Unit: {unitWords[unit]}</span>
      {series.map((s) => (
        <span key={s.key}>
          <span className="font-medium">{s.label}</span>
          {s.help ? `: ${s.help}` : ''}
          {s.source ? <span className="block text-ink-muted">Source: {s.source}</span> : null}
        </span>
      ))}
    </span>
  )
}

function slug(...parts: (string | undefined)[]): string {
  return parts
    .filter(Boolean)
    .join(' ')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}
