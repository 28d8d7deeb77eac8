import { ChevronDown, Search } from 'lucide-react'
import type { ComponentProps } from 'react'
import { classNames } from './class-names'

const field =
  'w-full rounded-md border border-field-line bg-surface text-sm text-ink placeholder:text-ink-faint hover:border-ink-muted focus-visible:border-accent focus-visible:outline-2 focus-visible:outline-offset-0 focus-visible:outline-accent disabled:cursor-not-allowed disabled:bg-sunken disabled:text-ink-faint aria-invalid:border-bad aria-invalid:outline-bad'

/** A one-line text field. Give it a label by `Field`. */
export function Input({ className, ...props }: ComponentProps<'input'>) {
  return <input className={classNames(field, 'h-8 px-2.5', className)} {...props} />
}

/** The browser's own select: works with every keyboard, screen reader and telephone. */
export function Select({ className, children, ...props }: ComponentProps<'select'>) {
  return (
    <span className={classNames('relative inline-flex w-full', className)}>
      <select className={classNames(field, 'h-8 appearance-none pr-8 pl-2.5')} {...props}>
        {children}
      </select>
      <ChevronDown aria-hidden className="pointer-events-none absolute top-2 right-2 size-4 text-ink-muted" />
    </span>
  )
}

/** A field that searches as one types; its label is for assistive technology, the placeholder for the eye. */
export function SearchField({
  label,
  value,
  onChange,
  className,
  ...props
}: Omit<ComponentProps<'input'>, 'value' | 'onChange' | 'type'> & {
  label: string
  value: string
  onChange: (value: string) => void
}) {
  return (
    <span className={classNames('relative block', className)}>
      <Search aria-hidden className="pointer-events-none absolute top-2 left-2.5 size-4 text-ink-muted" />
      <Input
        type="search"
        aria-label={label}
        className="pl-8"
        value={value}
        onChange={(event) => onChange(event.target.value)}
        {...props}
      />
    </span>
  )
}
