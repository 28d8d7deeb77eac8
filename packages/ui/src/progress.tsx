import { classNames } from './class-names'

/** How far something is, 0 to 1; null when that cannot be known, which is shown as movement and not as a number. */
export function Progress({
  value,
  label,
  tone = 'accent',
  className,
}: {
  value: number | null
  label: string
  tone?: 'accent' | 'good' | 'warn' | 'bad'
  className?: string
}) {
  const fill = { accent: 'bg-accent-strong', good: 'bg-good', warn: 'bg-band-write', bad: 'bg-bad' }[tone]
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={value === null ? undefined : Math.round(value * 100)}
      className={classNames('h-1.5 w-full overflow-hidden rounded-full bg-line', className)}
    >
      <div
        className={classNames(
          'h-full rounded-full transition-[width]',
          fill,
          value === null && 'w-1/3 animate-pulse',
        )}
        style={value === null ? undefined : { width: `${Math.min(100, Math.max(0, value * 100))}%` }}
      />
    </div>
  )
}
