'use client'
import { CalendarClock, ChevronDown, Pause, Play, ZoomOut } from 'lucide-react'
import { useState } from 'react'
import { formatTime } from './age'
import { Button } from './button'
import { classNames } from './class-names'
import { Dialog } from './dialog'
import { Field } from './field'
import { Input } from './input'
import { Menu, MenuChoice, MenuItem, MenuSeparator } from './menu'
import { Segmented } from './segmented'
import { parseMoment, type TimeRange, timeRangeEnds, timeRangeLabel, timeRangePresets } from './time-range'

const quick = ['5m', '15m', '1h', '6h', '24h'] as const

/** Local time in the form that `<input type="datetime-local">` wants. */
function toLocalInput(at: number): string {
  const d = new Date(at - new Date(at).getTimezoneOffset() * 60_000)
  return d.toISOString().slice(0, 19)
}

/**
 * Chooses what the charts show: presets, any two moments, or live. Going from live to paused keeps the window that is
 * seen; the caller keeps the range in the address.
 */
export function TimeRangePicker({
  range,
  onChange,
  now,
  live,
  onLive,
}: {
  range: TimeRange
  onChange: (range: TimeRange) => void
  /** The console's time now, in milliseconds. */
  now: () => number
  /** Whether new values are arriving and shown. */
  live: boolean
  onLive: (live: boolean) => void
}) {
  const [open, setOpen] = useState(false)
  const word = range.kind === 'last' ? timeRangePresets.find((p) => p.ms === range.ms)?.word : undefined
  const quickWord = quick.find((q) => q === word) ?? null
  const label = timeRangeLabel(range)
  const span = range.kind === 'last' ? range.ms : range.to - range.from
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Segmented
        label="Time range"
        className="hidden sm:inline-flex"
        value={quickWord}
        onChange={(next) => {
          const preset = timeRangePresets.find((p) => p.word === next)
          if (preset) onChange({ kind: 'last', ms: preset.ms })
        }}
        choices={quick.map((q) => ({
          value: q,
          label: q,
          title: timeRangePresets.find((p) => p.word === q)?.label,
        }))}
      />
      <Menu
        trigger={
          <Button aria-label={`Time range: ${label}`}>
            <CalendarClock aria-hidden />
            {label}
            <ChevronDown aria-hidden className="text-ink-muted" />
          </Button>
        }
      >
        <MenuChoice
          label="Presets"
          value={word ?? ''}
          onChange={(next) => {
            const preset = timeRangePresets.find((p) => p.word === next)
            if (preset) onChange({ kind: 'last', ms: preset.ms })
          }}
          choices={timeRangePresets.map((p) => ({ value: p.word as string, label: p.label }))}
        />
        <MenuSeparator />
        <MenuItem onSelect={() => setOpen(true)}>From … to …</MenuItem>
      </Menu>
      <Dialog open={open} onOpenChange={setOpen} title="From one moment to another">
        <RangeForm
          range={range}
          now={now}
          onChange={(next) => {
            onChange(next)
            setOpen(false)
          }}
        />
      </Dialog>
      <Button
        size="icon"
        aria-label="Zoom out"
        title="Zoom out: twice the time"
        disabled={span * 2 > 90 * 86_400_000}
        onClick={() => {
          const { from, to } = timeRangeEnds(range, now())
          const end = Math.min(now(), to + span / 2)
          onChange(
            range.kind === 'last'
              ? { kind: 'last', ms: span * 2 }
              : {
                  kind: 'between',
                  from: Math.round(Math.min(from - span / 2, end - span * 2)),
                  to: Math.round(end),
                },
          )
        }}
      >
        <ZoomOut aria-hidden />
      </Button>
      <Button
        aria-pressed={live}
        onClick={() => onLive(!live)}
        title={live ? 'Pause: keep what is shown now' : 'Show new values as they arrive'}
        className={classNames(live && 'border-good/40 bg-good-soft text-good hover:bg-good-soft')}
      >
        {live ? <Pause aria-hidden /> : <Play aria-hidden />}
        Live
      </Button>
    </div>
  )
}

function RangeForm({
  range,
  now,
  onChange,
}: {
  range: TimeRange
  now: () => number
  onChange: (range: TimeRange) => void
}) {
  const ends = timeRangeEnds(range, now())
  const [from, setFrom] = useState(toLocalInput(ends.from))
  const [to, setTo] = useState(toLocalInput(ends.to))
  const [error, setError] = useState<string | null>(null)
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  return (
    <form
      className="flex flex-col gap-3 pb-3"
      onSubmit={(event) => {
        event.preventDefault()
        const a = parseMoment(from)
        const b = parseMoment(to)
        if (a === null || b === null) return setError('Both ends must be a date and a time.')
        if (b - a < 2_000) return setError('The end must lie at least 2 s after the beginning.')
        if (b - a > 90 * 86_400_000) return setError('At most 90 days are kept.')
        onChange({ kind: 'between', from: a, to: b })
      }}
    >
      <Field label="From">
        {(control) => (
          <Input
            {...control}
            type="datetime-local"
            step={1}
            value={from}
            onChange={(event) => setFrom(event.target.value)}
          />
        )}
      </Field>
      <Field label="To" error={error} hint={`${zone}; now it is ${formatTime(now())}`}>
        {(control) => (
          <Input
            {...control}
            type="datetime-local"
            step={1}
            value={to}
            onChange={(event) => setTo(event.target.value)}
          />
        )}
      </Field>
      <div className="flex justify-end">
        <Button type="submit" variant="primary">
          Show this range
        </Button>
      </div>
    </form>
  )
}
