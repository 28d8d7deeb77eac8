import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'
import { classNames } from './class-names'

/** A dense table that scrolls sideways by itself (and by keyboard) instead of widening the page. */
export function Table({ className, label, ...props }: ComponentProps<'table'> & { label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section aria-label={label} tabIndex={0} className="relative w-full overflow-x-auto">
      <table
        aria-label={label}
        className={classNames('w-full border-collapse text-left text-[13px]', className)}
        {...props}
      />
    </section>
  )
}

export function TableHead({ className, ...props }: ComponentProps<'thead'>) {
  return <thead className={classNames('border-b border-line bg-sunken/60', className)} {...props} />
}

export function TableBody({ className, ...props }: ComponentProps<'tbody'>) {
  return <tbody className={classNames('[&>tr:last-child]:border-0', className)} {...props} />
}

export function TableRow({ className, ...props }: ComponentProps<'tr'>) {
  return <tr className={classNames('border-b border-line hover:bg-hover/50', className)} {...props} />
}

const cell = 'px-3 py-2 align-middle first:pl-4 last:pr-4'

export function TableCell({ className, number, ...props }: ComponentProps<'td'> & { number?: boolean }) {
  return (
    <td
      className={classNames(cell, number && 'text-right whitespace-nowrap tabular-nums', className)}
      {...props}
    />
  )
}

export type SortDirection = 'ascending' | 'descending'

/** A column's heading; with `onSort` it is a button, and says the order to assistive technology. */
export function TableHeader({
  className,
  number,
  sort,
  onSort,
  title,
  children,
  ...props
}: ComponentProps<'th'> & {
  number?: boolean
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
