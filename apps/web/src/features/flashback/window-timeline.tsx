'use client'
import { formatTime, formatTimeTick, formatValue, timeTicks } from '@floe/ui'
import { type PointerEvent, useMemo, useRef } from 'react'
import { areaPaths, largestIn, momentAt, movedBy, type Stretch, shareOf, within } from './window-scale'

export type RatePoint = { at: number; value: number | null; gapBefore: boolean }

const percent = (share: number) => `${share * 100}%`

/**
 * The window from its oldest point to now, with the transaction rate and a mark for each flashback point. With `onChange` it
 * is a slider: a press or a drag chooses the moment, arrow keys move it.
 */
export function WindowTimeline({
  window,
  rate,
  points,
  moment = null,
  onChange,
}: {
  window: Stretch
  rate: readonly RatePoint[]
  points: readonly { number: number; at: number }[]
  moment?: number | null
  onChange?: (at: number) => void
}) {
  const dragging = useRef(false)
  const paths = useMemo(() => areaPaths(rate, window), [rate, window])
  const top = useMemo(() => largestIn(rate, window), [rate, window])
  const span = window.to - window.from
  const at = moment === null ? null : within(window, moment)
  const choose = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect()
    onChange?.(momentAt(window, (event.clientX - box.left) / box.width))
  }
  const drawing = (
    <>
      <svg
        aria-hidden
        viewBox="0 0 1000 100"
        preserveAspectRatio="none"
        className="absolute inset-x-0 top-0 h-full w-full"
      >
        {paths.map((path) => (
          <path key={path} d={path} fill="var(--series-1)" fillOpacity={0.35} />
        ))}
      </svg>
      {points.map((point) => (
        <span
          key={point.number}
          aria-hidden
          className="absolute bottom-0 h-2.5 w-px bg-ink-muted"
          style={{ left: percent(shareOf(window, point.at)) }}
        />
      ))}
      {at === null ? null : (
        <span
          aria-hidden
          className="pointer-events-none absolute inset-y-0 w-0.5 -translate-x-1/2 bg-accent-strong"
          style={{ left: percent(shareOf(window, at)) }}
        >
          <span className="absolute top-1/2 left-1/2 h-6 w-3 -translate-1/2 rounded-sm border border-surface bg-accent-strong" />
        </span>
      )}
    </>
  )
  const frame =
    'relative h-24 w-full overflow-hidden rounded-md border border-line-strong bg-sunken outline-offset-2'
  return (
    <div>
      {onChange ? (
        <div
          role="slider"
          tabIndex={0}
          aria-label="Moment"
          aria-valuemin={Math.floor(window.from / 1_000)}
          aria-valuemax={Math.floor(window.to / 1_000)}
          aria-valuenow={Math.floor((at ?? window.to) / 1_000)}
          aria-valuetext={at === null ? 'not chosen' : formatTime(at)}
          className={`${frame} cursor-ew-resize touch-none select-none focus-visible:outline-2 focus-visible:outline-accent`}
          onPointerDown={(event) => {
            if (event.button !== 0) return
            event.currentTarget.setPointerCapture(event.pointerId)
            dragging.current = true
            choose(event)
          }}
          onPointerMove={(event) => {
            if (dragging.current) choose(event)
          }}
          onPointerUp={() => {
            dragging.current = false
          }}
          onPointerCancel={() => {
            dragging.current = false
          }}
          onKeyDown={(event) => {
            const next = movedBy(event.key, event.shiftKey, window, at ?? window.to)
            if (next === null) return
            event.preventDefault()
            onChange(next)
          }}
        >
          {drawing}
        </div>
      ) : (
        <div role="img" aria-label="The window, with the transaction rate" className={frame}>
          {drawing}
        </div>
      )}
      <div aria-hidden className="relative mt-1 h-4 text-[11px] text-ink-muted tabular-nums">
        {timeTicks(window.from, window.to, 4).map((tick) => (
          <span
            key={tick}
            className="absolute -translate-x-1/2"
            style={{ left: percent(Math.min(0.94, Math.max(0.04, shareOf(window, tick)))) }}
          >
            {formatTimeTick(tick, span)}
          </span>
        ))}
      </div>
      <p className="mt-1 flex flex-wrap gap-x-4 text-xs text-ink-muted">
        <span className="flex items-center gap-1.5">
          <span
            aria-hidden
            className="size-2 rounded-xs"
            style={{ background: 'var(--series-1)', opacity: 0.5 }}
          />
          transactions per second{top === null ? '' : `, at most ${formatValue(top, '1/s')}`}
        </span>
        <span className="flex items-center gap-1.5">
          <span aria-hidden className="h-2.5 w-px bg-ink-muted" />
          flashback point
        </span>
      </p>
    </div>
  )
}
