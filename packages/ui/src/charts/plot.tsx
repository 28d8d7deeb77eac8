'use client'
import { memo, useCallback, useMemo, useRef } from 'react'
import { Area, CartesianGrid, ComposedChart, Line, ReferenceArea, XAxis, YAxis } from 'recharts'
import { formatTick, formatTimeTick, timeTicks, valueTicks } from './axis'
import { type ChartBand, visibleBands } from './checkpoint-band'
import { dotKey, drawnExtent, drawnRows, maximumSpan, withMaximum } from './drawn'
import type { ChartRow, ChartSeries, ChartUnit } from './series'

/** Room around the plot, in pixels; the layer that follows the pointer reckons with the same. */
export const plotRoom = { left: 66, right: 8, top: 8, bottom: 22 }

export type PlotProps = {
  series: readonly ChartSeries[]
  rows: readonly ChartRow[]
  unit: ChartUnit
  stacked: boolean
  from: number
  to: number
  width: number
  height: number
  bands: readonly ChartBand[]
  /** Least top of the value axis, so that noise at rest does not fill the chart. */
  leastTop?: number
  /** Where the axis ends although values lie above it; null where it holds them all. */
  clipAt?: number | null
}

// Recharts takes an object of another identity for a change and lays everything out again: these never change
const axisText = { fontSize: 11, fill: 'var(--ink-muted)' }
const axisLine = { stroke: 'var(--line-strong)' }
/** A phase lies behind the lines; one that is short has to be seen all the same. */
const bandOpacity: Record<ChartBand['phase'], number> = { write: 0.13, sync: 0.55, stall: 0.3 }
const margin = { left: 0, right: plotRoom.right, top: plotRoom.top, bottom: 0 }

/** The array of before as long as it holds the same numbers. */
function useSame(numbers: number[]): number[] {
  const kept = useRef(numbers)
  if (kept.current.length !== numbers.length || kept.current.some((n, i) => n !== numbers[i]))
    kept.current = numbers
  return kept.current
}

/**
 * The drawing itself, by Recharts: no animation, no dots but for points that stand alone, straight lines, numeric time,
 * nothing that listens to the pointer. It is drawn again only when what it shows has changed.
 */
export const Plot = memo(function Plot({
  series,
  rows,
  unit,
  stacked,
  from,
  to,
  width,
  height,
  bands,
  leastTop = 0,
  clipAt = null,
}: PlotProps) {
  const plotWidth = width - plotRoom.left - plotRoom.right
  const range = drawnExtent(series, rows, stacked, from, to)
  const ticks = useSame(
    valueTicks(
      unit === 'ratio' ? (range?.min ?? 0) : Math.min(0, range?.min ?? 0),
      Math.max(clipAt ?? range?.max ?? 0, leastTop, unit === 'ratio' ? 1 : 0),
      unit,
      Math.max(2, Math.round(height / 45)),
    ),
  )
  const bounds = useSame([ticks[0] ?? 0, ticks.at(-1) ?? 1])
  const drawn = useMemo(() => drawnRows(series, rows, stacked), [series, rows, stacked])
  const shaded = useMemo(
    () =>
      withMaximum(series, rows).map((s) => ({
        key: s.maximumKey,
        color: s.color,
        span: maximumSpan(s.key, s.maximumKey),
      })),
    [series, rows],
  )
  const span = to - from
  const formatAt = useCallback((at: number) => formatTimeTick(at, span), [span])
  const formatIt = useCallback((value: number) => formatTick(value, unit), [unit])
  return (
    <ComposedChart
      width={width}
      height={height}
      data={drawn.rows as ChartRow[]}
      margin={margin}
      accessibilityLayer={false}
    >
      <CartesianGrid vertical={false} stroke="var(--line)" />
      {visibleBands(bands, from, to, plotWidth).map((band) => (
        <ReferenceArea
          key={band.key}
          x1={band.from}
          x2={band.to}
          ifOverflow="hidden"
          fill={`var(--band-${band.phase})`}
          fillOpacity={bandOpacity[band.phase]}
          stroke="none"
        />
      ))}
      <XAxis
        dataKey="at"
        type="number"
        scale="linear"
        domain={[from, to]}
        allowDataOverflow
        ticks={timeTicks(from, to, plotWidth / 84)}
        interval={0}
        tickFormatter={formatAt}
        tick={axisText}
        tickLine={axisLine}
        axisLine={axisLine}
        height={plotRoom.bottom}
        tickMargin={4}
      />
      <YAxis
        domain={bounds as [number, number]}
        allowDataOverflow={clipAt !== null}
        ticks={ticks}
        interval={0}
        tickFormatter={formatIt}
        tick={axisText}
        tickLine={false}
        axisLine={false}
        width={plotRoom.left}
        tickMargin={4}
      />
      {shaded.map((s) => (
        <Area
          key={s.key}
          dataKey={s.span}
          type="linear"
          stroke="none"
          fill={`var(--series-${s.color})`}
          fillOpacity={0.22}
          dot={false}
          activeDot={false}
          connectNulls={false}
          isAnimationActive={false}
        />
      ))}
      {series.map((s) =>
        s.kind === 'area' || (stacked && s.kind !== 'line') ? (
          <Area
            key={s.key}
            dataKey={s.key}
            stackId={stacked ? 'all' : undefined}
            type="linear"
            stroke={`var(--series-${s.color})`}
            strokeWidth={1.25}
            fill={`var(--series-${s.color})`}
            fillOpacity={0.3}
            dot={false}
            activeDot={false}
            connectNulls={false}
            isAnimationActive={false}
          />
        ) : (
          <Line
            key={s.key}
            dataKey={s.key}
            type="linear"
            stroke={`var(--series-${s.color})`}
            strokeWidth={1.5}
            strokeDasharray={s.dashed ? '5 3' : undefined}
            dot={false}
            activeDot={false}
            connectNulls={false}
            isAnimationActive={false}
          />
        ),
      )}
      {series
        .filter((s) => drawn.dots.has(s.key))
        .map((s) => (
          <Line
            key={dotKey(s.key)}
            dataKey={dotKey(s.key)}
            type="linear"
            // a point without a line to it: the round ends of a line of no length
            stroke={`var(--series-${s.color})`}
            strokeWidth={4}
            strokeLinecap="round"
            dot={false}
            activeDot={false}
            connectNulls={false}
            isAnimationActive={false}
          />
        ))}
    </ComposedChart>
  )
})
