import { classNames } from './class-names'

/**
 * How far something is, 0 to 1; null when that cannot be known, which is shown as movement and not as a number. With
 * `showPercent` the number stands beside the bar, rounded down: 100 % is only what is done.
 */
export function Progress({
  value,
  label,
  tone = 'accent',
  showPercent,
  className,
}: {
  value: number | null
  label: string
  tone?: 'accent' | 'good' | 'warn' | 'bad'
  showPercent?: boolean
  className?: string
}) {
  const fill = { accent: 'bg-accent-strong', good: 'bg-good', warn: 'bg-band-write', bad: 'bg-bad' }[tone]
  const percent = value === null ? null : Math.min(100, Math.max(0, value * 100))
  // 0.29 * 100 is a little less than 29
  const whole = percent === null ? null : Math.floor(percent + 1e-9)
  const bar = (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={whole ?? undefined}
      className={classNames('h-1.5 w-full overflow-hidden rounded-full bg-line', !showPercent && className)}
    >
      <div
        className={classNames(
          'h-full rounded-full transition-[width]',
          fill,
          percent === null && 'w-1/3 animate-pulse',
        )}
        style={percent === null ? undefined : { width: `${percent}%` }}
      />
    </div>
  )
  if (!showPercent) return bar
  return (
    <div className={classNames('flex items-center gap-2', className)}>
      {bar}
      {whole === null ? null : (
        // the bar reports it to a screen reader
        <span aria-hidden className="w-9 shrink-0 text-right text-xs text-ink-muted tabular-nums">
          {whole} %
        </span>
      )}
    </div>
  )
}
