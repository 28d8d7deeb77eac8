'use client'
import { memo, useCallback, useRef } from 'react'
import { Area, CartesianGrid, ComposedChart, Line, ReferenceArea, XAxis, YAxis } from 'recharts'
import { formatTick, formatTimeTick, timeTicks, valueTicks } from './axis'
import { type ChartBand, visibleBands } from './checkpoint-band'
import { type ChartRow, type ChartSeries, type ChartUnit, extent } from './series'

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
}

// Recharts takes an object of another identity for a change and lays everything out anew: these never change
const axisText = { fontSize: 11, fill: 'var(--ink-muted)' }
const axisLine = { stroke: 'var(--line-strong)' }
const margin = { left: 0, right: plotRoom.right, top: plotRoom.top, bottom: 0 }

/** The array of before as long as it holds the same numbers. */
function useSame(numbers: number[]): number[] {
  const kept = useRef(numbers)
  if (kept.current.length !== numbers.length || kept.current.some((n, i) => n !== numbers[i]))
    kept.current = numbers
  return kept.current
}

/** In a stacked chart the areas count together, and a line stands for itself. */
function drawnExtent(
  series: readonly ChartSeries[],
  rows: readonly ChartRow[],
  stacked: boolean,
  from: number,
  to: number,
) {
  const keysOf = (lines: boolean) => series.filter((s) => (s.kind === 'line') === lines).map((s) => s.key)
  if (!stacked) return extent(rows, [...keysOf(true), ...keysOf(false)], false, from, to)
  const areas = extent(rows, keysOf(false), true, from, to)
  const lines = extent(rows, keysOf(true), false, from, to)
  return areas && lines
    ? { min: Math.min(areas.min, lines.min), max: Math.max(areas.max, lines.max) }
    : (areas ?? lines)
}

/**
 * The drawing itself, by Recharts: no animation, no dots, straight lines, numeric time, nothing that listens to the
 * pointer. It is drawn anew only when what it shows has changed.
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
}: PlotProps) {
  const plotWidth = width - plotRoom.left - plotRoom.right
  const range = drawnExtent(series, rows, stacked, from, to)
  const ticks = useSame(
    valueTicks(
      unit === 'ratio' ? (range?.min ?? 0) : Math.min(0, range?.min ?? 0),
      Math.max(range?.max ?? 0, leastTop, unit === 'ratio' ? 1 : 0),
      unit,
      Math.max(2, Math.round(height / 45)),
    ),
  )
  const bounds = useSame([ticks[0] ?? 0, ticks.at(-1) ?? 1])
  const span = to - from
  const formatAt = useCallback((at: number) => formatTimeTick(at, span), [span])
  const formatIt = useCallback((value: number) => formatTick(value, unit), [unit])
  return (
    <ComposedChart
      width={width}
      height={height}
      data={rows as ChartRow[]}
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
          fill={band.phase === 'write' ? 'var(--band-write)' : 'var(--band-sync)'}
          fillOpacity={band.phase === 'write' ? 0.13 : 0.55}
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
        ticks={ticks}
        interval={0}
        tickFormatter={formatIt}
        tick={axisText}
        tickLine={false}
        axisLine={false}
        width={plotRoom.left}
        tickMargin={4}
      />
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
    </ComposedChart>
  )
})
