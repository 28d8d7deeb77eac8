import type { Fault } from '@floe/domain'
import { CircleAlert, CircleCheck, Info, RotateCw, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from './button'
import { classNames } from './class-names'

export type Tone = 'info' | 'good' | 'warn' | 'bad'

const looks = {
  info: { icon: Info, box: 'border-accent/35 bg-accent-soft', mark: 'text-accent' },
  good: { icon: CircleCheck, box: 'border-good/35 bg-good-soft', mark: 'text-good' },
  warn: { icon: TriangleAlert, box: 'border-warn/40 bg-warn-soft', mark: 'text-warn' },
  bad: { icon: CircleAlert, box: 'border-bad/40 bg-bad-soft', mark: 'text-bad' },
} as const

/** A message that stays in the page. `bad` is announced at once, the others when there is a pause. */
export function Alert({
  tone = 'info',
  title,
  children,
  actions,
  className,
}: {
  tone?: Tone
  title?: ReactNode
  children?: ReactNode
  actions?: ReactNode
  className?: string
}) {
  const { icon: Icon, box, mark } = looks[tone]
  return (
    <div
      role={tone === 'bad' ? 'alert' : 'status'}
      className={classNames('flex gap-2.5 rounded-md border px-3 py-2.5 text-sm text-ink', box, className)}
    >
      <Icon aria-hidden className={classNames('mt-0.5 size-4 shrink-0', mark)} />
      <div className="min-w-0 flex-1">
        {title ? <p className="font-medium break-words">{title}</p> : null}
        {children ? (
          <div className={classNames('break-words text-ink-muted', title ? 'mt-0.5' : '')}>{children}</div>
        ) : null}
        {actions ? <div className="mt-2 flex flex-wrap gap-2">{actions}</div> : null}
      </div>
    </div>
  )
}

/** A Fault as PostgreSQL would print it: the fact, then its detail and hint; with a way to try again. */
export function FaultAlert({
  fault,
  onRetry,
  tone = 'bad',
  actions,
  className,
}: {
  fault: Fault
  onRetry?: () => void
  tone?: Tone
  actions?: ReactNode
  className?: string
}) {
  return (
    <Alert
      tone={tone}
      className={className}
      title={fault.message}
      actions={
        onRetry || actions ? (
          <>
            {onRetry ? (
              <Button size="small" onClick={onRetry}>
                <RotateCw aria-hidden />
                Try again
              </Button>
            ) : null}
            {actions}
          </>
        ) : undefined
      }
    >
      {fault.detail ? <p className="whitespace-pre-wrap">{fault.detail}</p> : null}
      {fault.hint ? (
        <p className="whitespace-pre-wrap">
          <span className="font-medium text-ink">Hint: </span>
          {fault.hint}
        </p>
      ) : null}
      <p className="mt-0.5 font-mono text-xs">{fault.code}</p>
    </Alert>
  )
}
