'use client'
import { formatDuration } from '@floe/domain'
import { classNames } from './class-names'
import { useNow } from './now'

const parts = {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
} as const
// made once: making one costs more than using it a hundred times
const plain = new Intl.DateTimeFormat('sv-SE', parts)
const withZone = new Intl.DateTimeFormat('sv-SE', { ...parts, timeZoneName: 'short' })

/** Local date and time with seconds and the zone's name; written the same in every language, as in PostgreSQL's log. */
export function formatTime(at: number, zone = true): string {
  return (zone ? withZone : plain).format(at)
}

/** An age for people, in whole seconds, minutes, hours or days: it moves on while it is read. */
export function formatAge(ms: number): string {
  if (ms >= 60_000 && ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`
  return ms < 1_000 ? '< 1 s' : ms < 10_000 ? `${Math.round(ms / 1_000)} s` : formatDuration(ms)
}

/** How long ago something was, counting on its own; the exact time (local and UTC) is its tooltip. `null` is unknown. */
export function Age({ at, prefix, className }: { at: number | null; prefix?: string; className?: string }) {
  const now = useNow()
  if (at === null) return <span className={className}>unknown</span>
  const text = now === null ? '–' : formatAge(now - at)
  return (
    <time
      dateTime={new Date(at).toISOString()}
      title={`${formatTime(at)} · ${new Date(at).toISOString()}`}
      className={classNames('whitespace-nowrap tabular-nums', className)}
      suppressHydrationWarning
    >
      {prefix ? `${prefix} ` : ''}
      {text} ago
    </time>
  )
}

/** A moment, in the browser's time zone; UTC in its tooltip. `null` is shown as a dash. */
export function Moment({ at, className }: { at: number | null; className?: string }) {
  if (at === null) return <span className={className}>–</span>
  return (
    <time
      dateTime={new Date(at).toISOString()}
      title={new Date(at).toISOString()}
      className={classNames('whitespace-nowrap tabular-nums', className)}
      suppressHydrationWarning
    >
      {formatTime(at, false)}
    </time>
  )
}
