import type { ComponentProps, ReactNode } from 'react'
import { classNames } from './class-names'

/** A bounded piece of a page. With a title it is a section that the title names. */
export function Card({
  title,
  description,
  actions,
  children,
  className,
  bodyClassName,
  headingLevel = 2,
  ...props
}: Omit<ComponentProps<'section'>, 'title'> & {
  title?: ReactNode
  description?: ReactNode
  actions?: ReactNode
  bodyClassName?: string
  headingLevel?: 2 | 3
}) {
  const Heading = headingLevel === 2 ? 'h2' : 'h3'
  return (
    <section
      className={classNames('rounded-lg border border-line bg-surface shadow-raised', className)}
      {...props}
    >
      {title || actions ? (
        <header className="flex min-h-11 flex-wrap items-center justify-between gap-x-4 gap-y-2 border-b border-line px-4 py-2">
          <div className={classNames('min-w-0', description ? 'flex-1 basis-48' : undefined)}>
            {title ? <Heading className="text-sm font-semibold text-ink">{title}</Heading> : null}
            {description ? <p className="mt-0.5 text-xs text-ink-muted">{description}</p> : null}
          </div>
          {actions ? <div className="flex flex-wrap items-center gap-2">{actions}</div> : null}
        </header>
      ) : null}
      <div className={classNames('px-4 py-3', bodyClassName)}>{children}</div>
    </section>
  )
}

/** Heading of a page with what can be done on it. */
export function PageHeader({
  title,
  description,
  actions,
  children,
}: {
  title: ReactNode
  description?: ReactNode
  actions?: ReactNode
  children?: ReactNode
}) {
  return (
    <header className="mb-4 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
      <div className="min-w-0">
        <h1 className="text-xl font-semibold tracking-tight text-ink">{title}</h1>
        {description ? <p className="mt-0.5 text-sm text-ink-muted">{description}</p> : null}
        {children}
      </div>
      {actions ? <div className="flex flex-wrap items-center gap-2">{actions}</div> : null}
    </header>
  )
}
