'use client'
import { type KeyboardEvent, type PointerEvent, useRef, useState } from 'react'
import { formatTime } from '../age'
import { formatValue } from './axis'
import { bandsAt, type ChartBand } from './checkpoint-band'
import { type Cursor, useCursorTime } from './cursor'
import { plotRoom } from './plot'
import { type ChartRow, type ChartSeries, type ChartUnit, nearestRow } from './series'

/** A drag shorter than this is a click. */
const leastDrag = 6

/**
 * What follows the pointer, drawn over the plot so that the plot itself is not drawn again: the line at the shared
 * moment, the values beside it, and the stretch being dragged for zooming. Arrow keys move the moment.
 */
export function PointerLayer({
  title,
  series,
  rows,
  unit,
  from,
  to,
  width,
  height,
  bands,
  cursor,
  onZoom,
}: {
  title: string
  series: readonly ChartSeries[]
  rows: readonly ChartRow[]
  unit: ChartUnit
  from: number
  to: number
  width: number
  height: number
  bands: readonly ChartBand[]
  cursor: Cursor
  onZoom?: (from: number, to: number) => void
}) {
  const cursorAt = useCursorTime(cursor)
  const [here, setHere] = useState(false)
  const [drag, setDrag] = useState<{ start: number; end: number } | null>(null)
  const dragStart = useRef<number | null>(null)
  const plotWidth = Math.max(1, width - plotRoom.left - plotRoom.right)
  const span = to - from
  const timeAt = (x: number) => from + (Math.min(Math.max(x, 0), plotWidth) / plotWidth) * span
  const xOf = (at: number) => ((at - from) / span) * plotWidth

  const at = cursorAt !== null && cursorAt >= from && cursorAt <= to ? cursorAt : null
  const row = at === null ? undefined : rows[nearestRow(rows, at)]
  // a value may only be shown for a moment near to it
  const near = row && at !== null && Math.abs(row.at - at) <= Math.max(10_000, span / 60) ? row : undefined
  const underway = at === null ? [] : bandsAt(bands, at, (span / plotWidth) * 2)

  function x(event: PointerEvent<HTMLElement>) {
    return event.clientX - event.currentTarget.getBoundingClientRect().left
  }
  function move(event: PointerEvent<HTMLElement>) {
    cursor.set(timeAt(x(event)))
    if (dragStart.current !== null) setDrag({ start: dragStart.current, end: x(event) })
  }
  function end(event: PointerEvent<HTMLElement>) {
    const start = dragStart.current
    dragStart.current = null
    setDrag(null)
    if (start === null || !onZoom) return
    const stop = x(event)
    if (Math.abs(stop - start) < leastDrag) return
    const [a, b] = [timeAt(Math.min(start, stop)), timeAt(Math.max(start, stop))]
    if (b - a >= 2_000) onZoom(Math.round(a), Math.round(b))
  }
  function key(event: KeyboardEvent<HTMLElement>) {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }
    const step = steps[event.key]
    if (event.key === 'Escape') return cursor.set(null)
    if (step === undefined && event.key !== 'Home' && event.key !== 'End') return
    event.preventDefault()
    const inside = rows.filter((r) => r.at >= from && r.at <= to && series.some((s) => r[s.key] !== null))
    if (inside.length === 0) return
    const current = at === null ? inside.length - 1 : nearestRow(inside, at) + (step ?? 0)
    const index = event.key === 'Home' ? 0 : event.key === 'End' ? inside.length - 1 : current
    const target = inside[Math.min(Math.max(index, 0), inside.length - 1)]
    if (target) cursor.set(target.at)
    setHere(true)
  }

  const left = at === null ? 0 : xOf(at)
  return (
    <div
      role="application"
      aria-label={`${title}: values by arrow keys${onZoom ? ', zoom by dragging' : ''}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys read the values
      tabIndex={0}
      className="absolute cursor-crosshair touch-pan-y select-none"
      style={{
        left: plotRoom.left,
        top: plotRoom.top,
        width: plotWidth,
        height: height - plotRoom.top - plotRoom.bottom,
      }}
      onPointerDown={(event) => {
        if (event.button !== 0 || event.pointerType === 'touch' || !onZoom) return
        event.currentTarget.setPointerCapture(event.pointerId)
        dragStart.current = x(event)
      }}
      onPointerMove={move}
      onPointerEnter={() => setHere(true)}
      onPointerUp={end}
      onPointerCancel={() => {
        dragStart.current = null
        setDrag(null)
      }}
      onPointerLeave={() => {
        setHere(false)
        if (dragStart.current === null) cursor.set(null)
      }}
      onBlur={() => setHere(false)}
      onKeyDown={key}
    >
      {at !== null ? (
        <div className="pointer-events-none absolute inset-y-0 w-px bg-ink-muted" style={{ left }} />
      ) : null}
      {drag ? (
        <div
          className="pointer-events-none absolute inset-y-0 border-x border-accent bg-accent/15"
          style={{ left: Math.min(drag.start, drag.end), width: Math.abs(drag.end - drag.start) }}
        />
      ) : null}
      {here && at !== null ? (
        <div
          aria-live="polite"
          className="pointer-events-none absolute top-1 z-20 min-w-36 rounded-md border border-line-strong bg-raised px-2 py-1.5 text-xs whitespace-nowrap text-ink shadow-overlay"
          style={left > plotWidth / 2 ? { right: plotWidth - left + 8 } : { left: left + 8 }}
        >
          <p className="text-ink-muted tabular-nums">{formatTime(near?.at ?? at, false)}</p>
          {near ? (
            series.map((s) => (
              <p key={s.key} className="mt-0.5 flex items-center gap-1.5">
                <span className="size-2 rounded-xs" style={{ background: `var(--series-${s.color})` }} />
                <span className="text-ink-muted">{s.label}</span>
                <span className="ml-auto pl-3 font-medium tabular-nums">
                  {formatValue(near[s.key], unit)}
                </span>
              </p>
            ))
          ) : (
            <p className="mt-0.5 text-ink-muted">not measured</p>
          )}
          {underway.map((band) => (
            <p key={band.key} className="mt-1 flex items-center gap-1.5 border-t border-line pt-1">
              <span className="size-2 rounded-xs" style={{ background: `var(--band-${band.phase})` }} />
              {band.label}
            </p>
          ))}
        </div>
      ) : null}
    </div>
  )
}
