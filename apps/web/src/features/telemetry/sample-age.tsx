'use client'
import { classNames, formatAge, formatTime, useNow } from '@floe/ui'

/** How old the newest sample is; from 5 s on that is said in words too. */
export function SampleAge({ at }: { at: number | null }) {
  const now = useNow()
  const age = at === null || now === null ? null : Math.max(0, now - at)
  const stale = age !== null && age >= 5_000
  return (
    <span
      data-testid="sample-age"
      data-sample-at={at ?? ''}
      title={at === null ? undefined : `newest sample taken at ${formatTime(at)}`}
      className={classNames(
        'inline-flex items-center gap-1.5 text-xs whitespace-nowrap tabular-nums',
        stale ? 'font-medium text-warn' : 'text-ink-muted',
      )}
    >
      <span
        aria-hidden
        className={classNames(
          'size-2 rounded-full',
          age === null ? 'bg-line-strong' : stale ? 'bg-warn' : 'bg-good',
        )}
      />
      {age === null ? 'waiting for a sample' : `${stale ? 'stale: ' : ''}newest sample ${formatAge(age)} ago`}
    </span>
  )
}
