'use client'
import { Button, formatTime, formatTimeTick, formatValue, timeTicks, useElementWidth } from '@floe/ui'
import { ChevronLeft, ChevronRight, Maximize2, ZoomIn, ZoomOut } from 'lucide-react'
import { type KeyboardEvent, type PointerEvent, type ReactNode, useEffect, useMemo, useRef } from 'react'
import { clockText, lossLooks } from './event-mark'
import { type EventGroup, groupInWords, type Mark, marksOver } from './table-events'
import { keptInside, movedView, viewOn, zoomedBy } from './timeline-view'
import { areaPaths, largestIn, momentAt, movedBy, type Stretch, shareOf, within } from './window-scale'

export type RatePoint = { at: number; value: number | null; gapBefore: boolean }

const percent = (share: number) => `${share * 100}%`

type Timeline = {
  window: Stretch
  /** The part of the window that is seen; null is all of it. */
  view: Stretch | null
  onView: (view: Stretch | null) => void
  rate: readonly RatePoint[]
  points: readonly { number: number; at: number }[]
  events: readonly EventGroup[]
  moment: number | null
  onMoment: (at: number) => void
  onMark: (mark: Mark) => void
}

/**
 * The window from its oldest point to now, with the transaction rate, a mark for each flashback point and for what WAL has of
 * tables. A press or a drag chooses the moment, keys move it, a mark chooses the moment before it.
 */
export function MomentTimeline(props: Timeline) {
  const { window, rate, points, events, moment, onMoment, onView, onMark } = props
  const view = keptInside(props.view, window)
  const seen = view ?? window
  const paths = useMemo(() => areaPaths(rate, seen), [rate, seen])
  const top = useMemo(() => largestIn(rate, seen), [rate, seen])
  const [box, width] = useElementWidth<HTMLDivElement>()
  const marks = useMemo(() => (width === 0 ? [] : marksOver(events, seen, width)), [events, seen, width])
  const at = moment === null ? null : within(window, moment)
  const visible = at !== null && at >= seen.from && at <= seen.to
  return (
    <div ref={box}>
      <ZoomBar window={window} view={view} onView={onView} around={at} />
      <MarkLane marks={marks} seen={seen} now={window.to} onMark={onMark} />
      <Track window={window} view={view} onView={onView} at={at} onMoment={onMoment}>
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
        {marks.map((mark) => (
          <span
            key={mark.at}
            aria-hidden
            className={`absolute inset-y-0 border-l border-dashed ${mark.loss === 'rows' ? 'border-bad/70' : mark.loss === 'values' ? 'border-warn/70' : 'border-line-strong'}`}
            style={{ left: percent(shareOf(seen, mark.at)) }}
          />
        ))}
        {points.map((point) =>
          point.at < seen.from || point.at > seen.to ? null : (
            <span
              key={point.number}
              aria-hidden
              className="absolute bottom-0 h-2.5 w-px bg-ink-muted"
              style={{ left: percent(shareOf(seen, point.at)) }}
            />
          ),
        )}
        {at !== null && visible ? (
          <span
            aria-hidden
            className="pointer-events-none absolute inset-y-0 w-0.5 -translate-x-1/2 bg-accent-strong"
            style={{ left: percent(shareOf(seen, at)) }}
          >
            <span className="absolute top-1/2 left-1/2 h-6 w-3 -translate-1/2 rounded-sm border border-surface bg-accent-strong" />
          </span>
        ) : null}
      </Track>
      <Axis seen={seen} at={visible ? at : null} now={window.to} width={width} />
      <Legend top={top} losses={[...new Set(marks.map((m) => m.loss))]} />
    </div>
  )
}

function Track({
  window,
  view,
  onView,
  at,
  onMoment,
  children,
}: {
  window: Stretch
  view: Stretch | null
  onView: (view: Stretch | null) => void
  at: number | null
  onMoment: (at: number) => void
  children: ReactNode
}) {
  const dragging = useRef(false)
  const track = useRef<HTMLDivElement | null>(null)
  const seen = view ?? window
  const momentUnder = (clientX: number) => {
    const box = track.current?.getBoundingClientRect()
    return box ? momentAt(seen, (clientX - box.left) / box.width) : seen.to
  }
  const choose = (event: PointerEvent<HTMLElement>) => onMoment(momentUnder(event.clientX))
  const zoom = useRef((_event: WheelEvent) => {})
  zoom.current = (event) => {
    // without a key the page scrolls, as everywhere
    if (!event.ctrlKey && !event.metaKey) return
    event.preventDefault()
    onView(zoomedBy(view, window, event.deltaY > 0 ? 1.25 : 0.8, momentUnder(event.clientX)))
  }
  useEffect(() => {
    const element = track.current
    const listener = (event: WheelEvent) => zoom.current(event)
    // React's own wheel listeners are passive: they cannot keep the page from zooming
    element?.addEventListener('wheel', listener, { passive: false })
    return () => element?.removeEventListener('wheel', listener)
  }, [])
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === '+' || event.key === '-') {
      event.preventDefault()
      onView(zoomedBy(view, window, event.key === '+' ? 0.5 : 2, at))
      return
    }
    const next = movedBy(event.key, event.shiftKey, window, at ?? window.to, seen)
    if (next === null) return
    event.preventDefault()
    onView(viewOn(view, window, next))
    onMoment(next)
  }
  return (
    <div
      ref={track}
      role="slider"
      tabIndex={0}
      aria-label="Moment"
      aria-valuemin={Math.floor(window.from / 1_000)}
      aria-valuemax={Math.floor(window.to / 1_000)}
      aria-valuenow={Math.floor((at ?? window.to) / 1_000)}
      aria-valuetext={at === null ? 'not chosen' : formatTime(at)}
      className="relative h-24 w-full cursor-crosshair touch-none overflow-hidden rounded-md border border-line-strong bg-sunken outline-offset-2 select-none focus-visible:outline-2 focus-visible:outline-accent"
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
      onKeyDown={press}
    >
      {children}
    </div>
  )
}

function ZoomBar({
  window,
  view,
  onView,
  around,
}: {
  window: Stretch
  view: Stretch | null
  onView: (view: Stretch | null) => void
  around: number | null
}) {
  const move = (share: number) => view && onView(movedView(view, window, share))
  return (
    <div className="mb-1 flex items-center gap-1">
      {/* what part of the window is seen */}
      <span aria-hidden className="relative mr-1 h-1 flex-1 overflow-hidden rounded-full bg-line">
        <span
          className="absolute inset-y-0 min-w-1 rounded-full bg-accent-strong/70"
          style={
            view
              ? {
                  left: percent(shareOf(window, view.from)),
                  width: percent(shareOf(window, view.to) - shareOf(window, view.from)),
                }
              : { left: 0, width: '100%' }
          }
        />
      </span>
      {view ? (
        <>
          <Button size="icon-small" variant="quiet" aria-label="Earlier" onClick={() => move(-0.5)}>
            <ChevronLeft aria-hidden />
          </Button>
          <Button size="icon-small" variant="quiet" aria-label="Later" onClick={() => move(0.5)}>
            <ChevronRight aria-hidden />
          </Button>
          <Button size="icon-small" variant="quiet" aria-label="Whole window" onClick={() => onView(null)}>
            <Maximize2 aria-hidden />
          </Button>
        </>
      ) : null}
      <Button
        size="icon-small"
        variant="quiet"
        aria-label="Zoom out"
        disabled={view === null}
        onClick={() => onView(zoomedBy(view, window, 3, around))}
      >
        <ZoomOut aria-hidden />
      </Button>
      <Button
        size="icon-small"
        variant="quiet"
        aria-label="Zoom in"
        title="Zoom in (Ctrl and the wheel, or the key +)"
        onClick={() => onView(zoomedBy(view, window, 1 / 3, around))}
      >
        <ZoomIn aria-hidden />
      </Button>
    </div>
  )
}

function MarkLane({
  marks,
  seen,
  now,
  onMark,
}: {
  marks: readonly Mark[]
  seen: Stretch
  now: number
  onMark: (mark: Mark) => void
}) {
  if (marks.length === 0) return null
  return (
    <div className="relative mb-0.5 h-6">
      {marks.map((mark) => {
        const { icon: Icon, box } = lossLooks[mark.loss]
        const words = mark.groups
          .slice(0, 5)
          .map((g) => `${clockText(g.from, now)} ${g.tableName ?? `table ${g.table}`}: ${groupInWords(g)}`)
        const more = mark.groups.length > 5 ? `\nand ${mark.groups.length - 5} more` : ''
        return (
          <button
            key={mark.at}
            type="button"
            aria-label={`${mark.groups.length > 1 ? `${mark.groups.length} events, ` : ''}moment before: ${words.join('; ')}`}
            title={`${words.join('\n')}${more}\nPress for the moment before.`}
            onClick={() => onMark(mark)}
            className={`absolute top-0.5 flex size-5 -translate-x-1/2 items-center justify-center rounded-sm border hover:border-accent ${box}`}
            style={{ left: `clamp(10px, ${percent(shareOf(seen, mark.at))}, calc(100% - 10px))` }}
          >
            {mark.groups.length > 1 ? (
              <span className="text-[10px] font-semibold tabular-nums">{mark.groups.length}</span>
            ) : (
              <Icon aria-hidden className="size-3" />
            )}
          </button>
        )
      })}
    </div>
  )
}

function Axis({ seen, at, now, width }: { seen: Stretch; at: number | null; now: number; width: number }) {
  const span = seen.to - seen.from
  // the moment's own label lies over those near it
  const apart = width > 0 ? 80 / width : 0
  const ticks = timeTicks(seen.from, seen.to, 4).filter(
    (tick) => at === null || Math.abs(shareOf(seen, tick) - shareOf(seen, at)) > apart,
  )
  return (
    <div aria-hidden className="relative mt-1 h-5 text-[11px] text-ink-muted tabular-nums">
      {ticks.map((tick) => (
        <span
          key={tick}
          className="absolute top-0.5 -translate-x-1/2"
          style={{ left: percent(Math.min(0.94, Math.max(0.04, shareOf(seen, tick)))) }}
        >
          {formatTimeTick(tick, span)}
        </span>
      ))}
      {at === null ? null : (
        <span
          className="absolute -translate-x-1/2 rounded-sm bg-accent-strong px-1.5 py-0.5 font-medium whitespace-nowrap text-on-accent"
          style={{ left: `clamp(34px, ${percent(shareOf(seen, at))}, calc(100% - 34px))` }}
        >
          {clockText(at, now)}
        </span>
      )}
    </div>
  )
}

function Legend({ top, losses }: { top: number | null; losses: readonly Mark['loss'][] }) {
  return (
    <p className="mt-1 flex flex-wrap gap-x-4 gap-y-1 text-xs text-ink-muted">
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
      {(['rows', 'values', 'none'] as const)
        .filter((loss) => losses.includes(loss))
        .map((loss) => {
          const { icon: Icon, words, box } = lossLooks[loss]
          return (
            <span key={loss} className="flex items-center gap-1.5">
              <span
                aria-hidden
                className={`flex size-3.5 items-center justify-center rounded-xs border ${box}`}
              >
                <Icon className="size-2.5" />
              </span>
              {words}
            </span>
          )
        })}
    </p>
  )
}
