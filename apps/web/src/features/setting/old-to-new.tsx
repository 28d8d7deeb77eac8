import { ArrowRight } from 'lucide-react'
import type { ReactNode } from 'react'

/** A value before and after a change, beside each other. */
export function OldToNew({
  from,
  to,
  arrow,
  children,
}: {
  from: string
  to: string
  /** What the arrow says to those who do not see it. */
  arrow: 'becomes' | 'became'
  children?: ReactNode
}) {
  return (
    <span className="inline-flex flex-wrap items-center gap-1.5 font-mono">
      <span className="[overflow-wrap:anywhere] text-ink-muted">{from}</span>
      <ArrowRight aria-label={arrow} className="size-3.5 shrink-0 text-ink-faint" />
      <span className="font-semibold [overflow-wrap:anywhere]">{to}</span>
      {children}
    </span>
  )
}
