'use client'
import { ArrowDown, ArrowUp, ChevronLeft, ChevronRight, ChevronsUpDown } from 'lucide-react'
import { type ComponentProps, type ReactNode, type RefObject, useLayoutEffect, useRef, useState } from 'react'
import { classNames } from './class-names'
import { noOverflow, type Overflow, overflowAfter } from './table-overflow'

/** What of a box's content lies beyond its edges, kept up to date. */
function useOverflow(): [RefObject<HTMLElement | null>, Overflow] {
  const box = useRef<HTMLElement | null>(null)
  const [overflow, setOverflow] = useState(noOverflow)
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const measure = () => setOverflow((before) => overflowAfter(before, element))
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    for (const child of element.children) observer.observe(child)
    element.addEventListener('scroll', measure, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [])
  return [box, overflow]
}

/**
 * A dense table. Where it is wider than its place it scrolls sideways on its own (also by keyboard) instead of widening the
 * page, says so with a bar of its own below, and keeps its first column and its actions (`actions` of cells) in view.
 */
export function Table({
  className,
  label,
  boxClassName,
  ...props
}: ComponentProps<'table'> & {
  label: string
  /** Of the box that scrolls: with a greatest height it scrolls both ways. */
  boxClassName?: string
}) {
  const [box, { left, right, neededWidth }] = useOverflow()
  const step = (direction: 1 | -1) => {
    const element = box.current
    element?.scrollBy({ left: direction * element.clientWidth * 0.7, behavior: 'smooth' })
  }
  return (
    <div data-scrolls={neededWidth !== null} className="group/table w-full min-w-0">
      <section
        ref={box}
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        className={classNames('relative w-full overflow-x-auto', boxClassName)}
      >
        <table
          aria-label={label}
          className={classNames('w-full border-collapse text-left text-[13px]', className)}
          {...props}
        />
      </section>
      {left > 0 || right > 0 ? (
        <div
          data-table-scroll
          className="flex items-center justify-end gap-1 border-t border-line bg-sunken/60 px-2 py-1 text-xs text-ink-muted"
        >
          <span className="mr-1">More columns</span>
          <ScrollButton
            label={`Columns of ${label} to the left`}
            disabled={left === 0}
            onPress={() => step(-1)}
          >
            <ChevronLeft aria-hidden className="size-4" />
          </ScrollButton>
          <ScrollButton
            label={`Columns of ${label} to the right`}
            disabled={right === 0}
            onPress={() => step(1)}
          >
            <ChevronRight aria-hidden className="size-4" />
          </ScrollButton>
        </div>
      ) : null}
    </div>
  )
}

function ScrollButton({
  label,
  disabled,
  onPress,
  children,
}: {
  label: string
  disabled: boolean
  onPress: () => void
  children: ReactNode
}) {
  return (
    <button
      type="button"
      aria-label={label}
      disabled={disabled}
      onClick={onPress}
      className="rounded-sm border border-line bg-surface p-0.5 text-ink hover:bg-hover disabled:text-ink-faint disabled:opacity-50"
    >
      {children}
    </button>
  )
}

export function TableHead({ className, ...props }: ComponentProps<'thead'>) {
  return (
    <thead
      className={classNames(
        'border-b border-line bg-[color-mix(in_srgb,var(--sunken)_60%,var(--surface))] [&>tr]:bg-inherit',
        className,
      )}
      {...props}
    />
  )
}

export function TableBody({ className, ...props }: ComponentProps<'tbody'>) {
  return <tbody className={classNames('[&>tr:last-child]:border-0', className)} {...props} />
}

export function TableRow({ className, ...props }: ComponentProps<'tr'>) {
  return (
    <tr
      className={classNames(
        'border-b border-line bg-surface hover:bg-[color-mix(in_srgb,var(--hover)_50%,var(--surface))]',
        className,
      )}
      {...props}
    />
  )
}

const cell = 'px-3 py-2 align-middle first:pl-4 last:pr-4'
// what stays in view lies over what scrolls below it; on a phone the first column may take at most a good third
const staysFirst =
  'group-data-[scrolls=true]/table:first:sticky group-data-[scrolls=true]/table:first:left-0 group-data-[scrolls=true]/table:first:z-10 group-data-[scrolls=true]/table:first:bg-inherit group-data-[scrolls=true]/table:first:max-w-[38vw] max-sm:group-data-[scrolls=true]/table:first:min-w-[32vw] group-data-[scrolls=true]/table:first:[overflow-wrap:anywhere]'
const staysLast =
  'w-0 text-right whitespace-nowrap group-data-[scrolls=true]/table:sticky group-data-[scrolls=true]/table:right-0 group-data-[scrolls=true]/table:z-10 group-data-[scrolls=true]/table:bg-inherit group-data-[scrolls=true]/table:border-l group-data-[scrolls=true]/table:border-line'

/** `actions`: the cell with what can be done with the row, always in view; it comes last. */
export function TableCell({
  className,
  number,
  actions,
  ...props
}: ComponentProps<'td'> & { number?: boolean; actions?: boolean }) {
  return (
    <td
      className={classNames(
        cell,
        actions ? staysLast : staysFirst,
        number && 'text-right whitespace-nowrap tabular-nums',
        className,
      )}
      {...props}
    />
  )
}

export type SortDirection = 'ascending' | 'descending'

/** A column's heading; with `onSort` it is a button, and says the order to assistive technology. */
export function TableHeader({
  className,
  number,
  actions,
  sort,
  onSort,
  title,
  children,
  ...props
}: ComponentProps<'th'> & {
  number?: boolean
  actions?: boolean
  sort?: SortDirection | null
  onSort?: () => void
  children?: ReactNode
}) {
  const Icon = sort === 'ascending' ? ArrowUp : sort === 'descending' ? ArrowDown : ChevronsUpDown
  return (
    <th
      scope="col"
      aria-sort={onSort ? (sort ?? 'none') : undefined}
      title={title}
      className={classNames(
        cell,
        actions ? staysLast : staysFirst,
        'py-1.5 text-xs font-medium whitespace-nowrap text-ink-muted',
        number && 'text-right',
        className,
      )}
      {...props}
    >
      {onSort ? (
        <button
          type="button"
          onClick={onSort}
          className={classNames(
            'inline-flex items-center gap-1 rounded-sm hover:text-ink',
            number && 'flex-row-reverse',
            sort && 'text-ink',
          )}
        >
          {children}
          <Icon aria-hidden className={classNames('size-3', !sort && 'opacity-60')} />
        </button>
      ) : (
        children
      )}
    </th>
  )
}
