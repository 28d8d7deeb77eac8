import { Button } from '@floe/ui'
import type { ReactNode } from 'react'

/** A row of a danger zone: what a verb does that cannot be undone, and its button; `guards`: what keeps from that. */
export function Danger({
  title,
  button,
  disabled,
  hint,
  guards = false,
  onPress,
  children,
}: {
  title: string
  button: string
  disabled: boolean
  hint?: string | undefined
  guards?: boolean
  onPress: () => void
  children: ReactNode
}) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 border-t border-line px-4 py-3 first:border-0">
      <div className="max-w-2xl min-w-0">
        <h3 className="text-sm font-medium">{title}</h3>
        <p className="text-sm text-ink-muted">{children}</p>
      </div>
      <Button
        variant={guards ? 'secondary' : 'danger-quiet'}
        disabled={disabled}
        title={hint}
        onClick={onPress}
      >
        {button}
      </Button>
    </div>
  )
}
