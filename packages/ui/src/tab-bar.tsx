'use client'
import { Slot } from 'radix-ui'
import { type ReactNode, useEffect, useRef } from 'react'
import { classNames } from './class-names'

/**
 * The tabs of a page whose content has an address of its own: a row of links. `inner` is for parts within a tab: then the
 * row looks lighter than the one above it.
 */
export function TabBar({ label, inner, children }: { label: string; inner?: boolean; children: ReactNode }) {
  if (inner)
    return (
      <nav aria-label={label} className="overflow-x-auto">
        <ul className="inline-flex gap-0.5 rounded-md border border-line-strong bg-surface p-0.5 [&_a]:mb-0 [&_a]:rounded-sm [&_a]:border-0 [&_a]:py-1 [&_a[aria-current]]:bg-accent-soft [&_a[aria-current]]:text-accent">
          {children}
        </ul>
      </nav>
    )
  return (
    <nav aria-label={label} className="-mx-4 overflow-x-auto border-b border-line px-4 sm:mx-0 sm:px-0">
      <ul className="flex gap-1">{children}</ul>
    </nav>
  )
}

/** One tab; its child is the link. */
export function TabLink({ current, children }: { current: boolean; children: ReactNode }) {
  const item = useRef<HTMLLIElement | null>(null)
  useEffect(() => {
    // on a narrow screen the row scrolls, and the current tab may lie beyond its edge
    if (current) item.current?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [current])
  return (
    <li ref={item} className="shrink-0">
      <Slot.Root
        aria-current={current ? 'page' : undefined}
        className={classNames(
          '-mb-px block rounded-t-md border-b-2 px-3 py-2 text-sm font-medium whitespace-nowrap focus-visible:-outline-offset-2',
          current
            ? 'border-accent-strong text-ink'
            : 'border-transparent text-ink-muted hover:border-line-strong hover:text-ink',
        )}
      >
        {children}
      </Slot.Root>
    </li>
  )
}
