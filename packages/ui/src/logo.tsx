import { classNames } from './class-names'

/** Floe's mark: a sheet of ice on the waterline, with most of it below. */
export function Logo({ className, wordmark = true }: { className?: string; wordmark?: boolean }) {
  return (
    <span className={classNames('inline-flex items-center gap-2', className)}>
      <svg viewBox="0 0 24 24" className="size-6 shrink-0" aria-hidden="true">
        <path d="M4 11 8.5 4.5 14 6l6 5Z" fill="var(--accent)" opacity="0.45" />
        <path d="M3 13h18l-5.2 7.2-4.3-1.4L8.5 21Z" fill="var(--accent)" />
      </svg>
      {wordmark ? <span className="text-base font-semibold tracking-tight text-ink">Floe</span> : null}
    </span>
  )
}
